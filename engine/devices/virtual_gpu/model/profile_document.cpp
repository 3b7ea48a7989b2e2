#include "engine/devices/virtual_gpu/model/profile_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/devices/virtual_gpu/model/json_lines.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"

namespace offprof {
namespace {

// Beyond any real GPU, so that no sum over its work exceeds 64 bits.
constexpr double kLeastRate = 1, kMostRate = 1e21;

std::string parent_of(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string last_of(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

bool is_known(const std::string& path, const std::vector<std::string>& known) {
  return std::ranges::any_of(
      known, [&](const std::string& one) { return one == path || one.starts_with(path + "."); });
}

/// Returns the names that a path may have in the group that it is in.
std::vector<std::string> siblings_of(const std::string& path, const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (std::string rest : known) {
    while (parent_of(rest) != parent_of(path) && !rest.empty()) rest = parent_of(rest);
    if (!rest.empty() && std::ranges::find(names, last_of(rest)) == names.end())
      names.push_back(last_of(rest));
  }
  return names;
}

}  // namespace

ProfileDocument::ProfileDocument(const std::string& text, std::string where, const ProfileKind& kind,
                                 const std::vector<std::string>& known)
    : where_(std::move(where)), kind_(kind), document_(parse_document(text, where_)) {
  check_schema(document_, kind.schema, where_);
  lines_ = lines_of_keys(text, where_);
  for (const auto& [path, line] : lines_) {
    if (is_known(path, known)) continue;
    const std::vector<std::string> names = siblings_of(path, known);
    const std::string guess = did_you_mean(last_of(path), names);
    throw input_error(
        fmt::format("{}: {} has no key '{}'", place(path), kind.what, path),
        !guess.empty() || names.empty() ? guess : fmt::format("Known: {}.", fmt::join(names, ", ")));
  }
}

std::string ProfileDocument::place(const std::string& path) const {
  const auto line = lines_.find(path);
  const std::string text = line == lines_.end() ? "" : fmt::format(": line {}", line->second);
  return fmt::format("'{}'{}", where_, text);
}

JsonValue ProfileDocument::at(const std::string& path) const {
  const std::string parent = parent_of(path);
  const JsonValue within = parent.empty() ? JsonValue(document_, place("")) : at(parent);
  if (!within.json().is_object()) within.fail("expected an object of figures");
  const auto found = within.json().find(last_of(path));
  if (found == within.json().end()) {
    throw input_error(fmt::format("{}: '{}' is missing", place(parent), path),
                      fmt::format("docs/reference/{} describes every key", kind_.reference));
  }
  return {*found, fmt::format("{}: {}", place(path), path)};
}

double read_positive(const JsonValue& value) {
  const double amount = value.as_amount();
  if (amount == 0) value.fail("0 is not a positive number");
  return amount;
}

double read_between(const JsonValue& value, double least, double most) {
  const double amount = read_positive(value);
  if (amount < least || amount > most)
    value.fail(fmt::format("{} is not between {} and {}", amount, least, most));
  return amount;
}

double read_rate(const JsonValue& value) {
  return read_between(value, kLeastRate, kMostRate);
}

}  // namespace offprof

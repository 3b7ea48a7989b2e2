#include "traces/io/json_access.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "traces/base/error.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

/// Formats a value for errors. Values that may be long are only named.
std::string shown(const nlohmann::json& json) {
  if (json.is_object()) return "an object";
  return json.is_primitive() && !json.is_binary() ? json.dump() : "an array";
}

/// Reads an integer, or calls `fail` with the fault.
template <typename Fail>
std::int64_t to_integer(const nlohmann::json& json, std::int64_t low, std::int64_t high, const Fail& fail) {
  if (!json.is_number_integer()) fail(fmt::format("{} is not a whole number", shown(json)));
  const bool beyond = json.is_number_unsigned() &&
                      json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  const std::int64_t value = beyond ? 0 : json.get<std::int64_t>();
  if (!beyond && value >= low && value <= high) return value;
  if (!beyond && value < low && low == 0) fail(fmt::format("{} is negative", value));
  fail(fmt::format("{} is not between {} and {}", json.dump(), low, high));
  return 0;
}

}  // namespace

JsonValue JsonValue::child(const nlohmann::json& json, std::string where) const {
  JsonValue value(json, std::move(where));
  value.document_ = document_;
  value.unpacked_ = unpacked_;
  return value;
}

CompactArray* JsonValue::compact() const {
  if (document_ == nullptr || !json_->is_binary()) return nullptr;
  return &document_->compact.at(json_->get_binary().subtype());
}

const CompactTable* JsonValue::compact_table() const {
  const CompactArray* const array = compact();
  return array != nullptr && array->is_table ? &array->table : nullptr;
}

void JsonValue::release() const {
  if (CompactArray* const array = compact()) *array = {};
}

std::string JsonValue::type_name() const {
  if (json_->is_null()) return "null";
  if (is_array()) return "an array";
  return fmt::format("{} {}", json_->is_object() ? "an" : "a", json_->type_name());
}

void JsonValue::fail(const std::string& what, const std::string& hint) const {
  const bool at_root = where_.ends_with(": ");
  throw input_error(fmt::format("{}{}{}", where_, at_root ? "" : ": ", what), hint);
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!json_->is_object()) fail(fmt::format("expected an object, found {}", type_name()));
  const auto found = json_->find(key);
  if (found == json_->end() || found->is_null()) return std::nullopt;
  return child(*found, fmt::format("{}{}{}", where_, where_.ends_with(": ") ? "" : ".", key));
}

JsonValue JsonValue::at(std::string_view key) const {
  auto value = find(key);
  if (!value) fail(fmt::format("'{}' is missing", key));
  return *value;
}

std::size_t JsonValue::size() const {
  if (!is_array()) fail(fmt::format("expected an array, found {}", type_name()));
  return compact() != nullptr ? compact()->size() : json_->size();
}

JsonValue JsonValue::element(std::size_t index) const {
  if (index >= size()) fail(fmt::format("has {} elements, expected at least {}", size(), index + 1));
  const std::string where = fmt::format("{}[{}]", where_, index);
  if (compact() == nullptr) return child((*json_)[index], where);
  const auto unpacked = std::make_shared<const nlohmann::json>(compact()->element(index));
  JsonValue value(*unpacked, where);
  value.unpacked_ = unpacked;
  return value;
}

const std::string& JsonValue::as_string() const {
  if (!json_->is_string()) fail(fmt::format("expected a string, found {}", type_name()));
  return json_->get_ref<const std::string&>();
}

bool JsonValue::as_bool() const {
  if (!json_->is_boolean()) fail(fmt::format("expected true or false, found {}", type_name()));
  return json_->get<bool>();
}

double JsonValue::as_amount() const {
  if (!json_->is_number()) fail(fmt::format("expected a number, found {}", type_name()));
  const auto value = json_->get<double>();
  if (!(value >= 0) || !std::isfinite(value))
    fail(fmt::format("{} is not a finite non-negative number", shown(*json_)));
  return value;
}

std::uint64_t JsonValue::as_unsigned() const {
  if (!json_->is_number_unsigned()) fail(fmt::format("{} is not a non-negative whole number", shown(*json_)));
  return json_->get<std::uint64_t>();
}

std::int64_t JsonValue::as_integer(std::int64_t low, std::int64_t high) const {
  return to_integer(*json_, low, high, [this](const std::string& what) { fail(what); });
}

std::vector<std::int64_t> JsonValue::as_integers(std::int64_t low, std::int64_t high) const {
  std::vector<std::int64_t> values;
  values.reserve(size());
  each_integer(low, high, [&](std::size_t, std::int64_t value) { values.push_back(value); });
  return values;
}

std::int64_t JsonValue::integer_at(std::size_t index, std::int64_t low, std::int64_t high) const {
  const auto fail = [&](const std::string& what) { element(index).fail(what); };
  if (const CompactArray* const array = compact()) return to_integer(array->element(index), low, high, fail);
  return to_integer((*json_)[index], low, high, fail);
}

std::vector<std::string> JsonValue::as_strings() const {
  std::vector<std::string> values;
  values.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) values.push_back(element(i).as_string());
  return values;
}

std::size_t JsonValue::as_one_of(std::span<const std::string_view> names) const {
  const auto found = std::ranges::find(names, std::string_view(as_string()));
  if (found == names.end()) fail(fmt::format("'{}' is not one of {}", as_string(), fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

void JsonValue::allow_only(std::initializer_list<std::string_view> keys) const {
  if (!json_->is_object()) fail(fmt::format("expected an object, found {}", type_name()));
  for (const auto& [key, value] : json_->items()) {
    if (std::ranges::find(keys, std::string_view(key)) != keys.end()) continue;
    fail(fmt::format("unknown key '{}'", key), fmt::format("Known: {}.", fmt::join(keys, ", ")));
  }
}

std::string dump_json(const nlohmann::ordered_json& json, int indent) {
  return printable(json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace), true);
}

}  // namespace offprof

#include "traces/analysis/baselines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "traces/base/error.h"
#include "traces/base/suggestion.h"
#include "traces/io/file.h"
#include "traces/io/json_access.h"
#include "traces/io/json_document.h"

namespace offprof {
namespace {

/// Parses a document up to its own `schema` and stops there. Skips the `schema` of nested parts.
class SchemaFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& schema() const { return schema_; }

  bool string(std::string& value) override {
    if (!expected_) return true;
    schema_ = value;
    return false;
  }
  bool key(std::string& name) override {
    expected_ = depth_ == 1 && name == "schema";
    return true;
  }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool enter() {
    ++depth_;
    expected_ = false;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  bool expected_ = false;
  std::string schema_;
};

/// Returns the document's schema; empty if it has none, or if the text before it is not JSON.
std::string schema_in_text(const std::string& text) {
  SchemaFinder finder;
  nlohmann::json::sax_parse(text, &finder);
  return finder.schema();
}

constexpr const char* kBaselines = "baselines";

nlohmann::json parse_baselines(const std::string& text, const std::string& path) {
  try {
    return parse_document(text, path);
  } catch (const Error& error) {
    throw Error(error.kind(), error.what(),
                "Restore the file, as from version control. Or remove it: --update writes a new one.");
  }
}

}  // namespace

std::string format_baseline(const StepSummary& figures, std::string_view tool_version) {
  return dump_json(baseline_to_json(figures, tool_version)) + "\n";
}

bool is_baseline(const std::string& text) {
  const std::string schema = schema_in_text(text);
  return schema_kind(schema) == schema_kind(kBaselineSchema) ||
         schema_kind(schema) == schema_kind(kBaselinesSchema);
}

bool has_baseline_keys(const std::string& path) {
  return schema_kind(schema_in_text(read_file(path))) == schema_kind(kBaselinesSchema);
}

StepSummary add_run(const StepSummary& old, StepSummary now) {
  for (const RunDifference& difference : run_differences(old, now))
    if (difference.what != "link")  // each run measures it anew
      throw input_error(fmt::format("the run to add has not the same {} as the baseline: {}; now {}",
                                    difference.what, difference.base, difference.now),
                        "Add runs of the same thing, or replace the baseline with --update.");
  now.earlier = old.earlier;
  now.earlier.push_back(old.metrics);
  if (now.earlier.size() > kMostEarlierRuns)
    now.earlier.erase(now.earlier.begin(), now.earlier.end() - kMostEarlierRuns);
  return now;
}

BaselineFile::BaselineFile(const std::string& path) : path_(path) {
  const std::string text = read_file(path);
  const nlohmann::json document = parse_baselines(text, path);
  if (schema_kind(schema_of(document)) == schema_kind(kBaselineSchema))
    throw input_error(fmt::format("{} has one baseline, without a key", path),
                      "Leave out --key, or name another file for baselines with keys.");
  check_schema(document, kBaselinesSchema, path);
  const JsonValue root(document, path);
  root.allow_only({"schema", kBaselines});
  if (!root.at(kBaselines).json().is_object()) root.at(kBaselines).fail("expected an object");
  // The checked text is parsed again in its own order, so that the parts that stay keep it.
  nlohmann::ordered_json ordered = nlohmann::ordered_json::parse(text);
  for (auto& [key, baseline] : ordered.at(kBaselines).items()) documents_[key] = std::move(baseline);
}

std::vector<std::string> BaselineFile::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, document] : documents_) keys.push_back(key);
  return keys;
}

StepSummary BaselineFile::at(const std::string& key) const {
  const auto found = documents_.find(key);
  if (found == documents_.end()) {
    const std::string suggestion = did_you_mean(key, keys());
    throw input_error(
        fmt::format("{} has no baseline '{}'", path_, key),
        fmt::format("{}{}Its keys: {}. --update adds this one.", suggestion, suggestion.empty() ? "" : " ",
                    documents_.empty() ? "none" : fmt::format("{}", fmt::join(keys(), ", "))));
  }
  return figures_from_document(nlohmann::json(found->second), kBaselineSchema,
                               fmt::format("{} ({})", path_, key));
}

void BaselineFile::set(const std::string& key, const StepSummary& figures, std::string_view tool_version) {
  documents_[key] = baseline_to_json(figures, tool_version);
}

std::string BaselineFile::format() const {
  nlohmann::ordered_json json = {{"schema", kBaselinesSchema},
                                 {kBaselines, nlohmann::ordered_json::object()}};
  for (const auto& [key, document] : documents_) json[kBaselines][key] = document;
  return dump_json(json) + "\n";
}

}  // namespace offprof

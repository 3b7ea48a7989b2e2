#include "traces/format/rules_io.h"

#include <fmt/format.h>

#include <limits>

#include "traces/base/error.h"

namespace offprof {
namespace {

/// Upper limit for dimensions, above LibTorch's own limit.
constexpr std::int64_t kMostDimensions = 64;

template <typename Value>
void add(nlohmann::ordered_json& json, const char* key, const std::optional<Value>& value) {
  if (value) json[key] = *value;
}

std::optional<std::string> text_from_json(const JsonValue& rule, std::string_view key) {
  const auto value = rule.find(key);
  if (!value) return std::nullopt;
  if (value->as_string().empty()) value->fail("is empty, so it matches nothing");
  return value->as_string();
}

template <typename Number>
std::optional<Number> number_from_json(const JsonValue& rule, std::string_view key,
                                       std::int64_t most = std::numeric_limits<Number>::max()) {
  const auto value = rule.find(key);
  if (!value) return std::nullopt;
  return static_cast<Number>(value->as_integer(0, most));
}

template <typename Number>
void refuse_empty_range(const JsonValue& rule, const char* low_key, const std::optional<Number>& low,
                        const char* high_key, const std::optional<Number>& high) {
  if (low && high && *low > *high)
    rule.fail(fmt::format("matches nothing: {} {} is greater than {} {}", low_key, *low, high_key, *high));
}

PolicyRule rule_from_json(const JsonValue& json) {
  json.allow_only({"op", "module", "dtype", "rank", "min_bytes", "max_bytes", "first", "last", "placement"});
  PolicyRule rule;
  rule.op = text_from_json(json, "op");
  rule.module = text_from_json(json, "module");
  rule.dtype = text_from_json(json, "dtype");
  rule.rank = number_from_json<std::int64_t>(json, "rank", kMostDimensions);
  rule.min_bytes = number_from_json<Bytes>(json, "min_bytes");
  rule.max_bytes = number_from_json<Bytes>(json, "max_bytes");
  rule.first = number_from_json<std::int32_t>(json, "first");
  rule.last = number_from_json<std::int32_t>(json, "last");
  rule.placement = placement_from_json(json.at("placement"));
  refuse_empty_range(json, "min_bytes", rule.min_bytes, "max_bytes", rule.max_bytes);
  refuse_empty_range(json, "first", rule.first, "last", rule.last);
  return rule;
}

}  // namespace

nlohmann::ordered_json rules_to_json(const std::vector<PolicyRule>& rules) {
  auto json = nlohmann::ordered_json::array();
  for (const PolicyRule& rule : rules) {
    nlohmann::ordered_json& row = json.emplace_back(nlohmann::ordered_json::object());
    add(row, "op", rule.op);
    add(row, "module", rule.module);
    add(row, "dtype", rule.dtype);
    add(row, "rank", rule.rank);
    add(row, "min_bytes", rule.min_bytes);
    add(row, "max_bytes", rule.max_bytes);
    add(row, "first", rule.first);
    add(row, "last", rule.last);
    row["placement"] = to_string(rule.placement);
  }
  return json;
}

std::vector<PolicyRule> rules_from_json(const JsonValue& json) {
  std::vector<PolicyRule> rules;
  std::optional<Place> disk;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const Place place = rules.emplace_back(rule_from_json(json.element(i))).placement.place;
    if (!takes_disk(place)) continue;
    if (place != disk.value_or(place))
      json.element(i).fail(
          fmt::format("places tensors on '{}', but an earlier rule on '{}': a run supports only one of them",
                      to_string(place), to_string(*disk)));
    disk = place;
  }
  return rules;
}

Placement placement_from_json(const JsonValue& json) {
  try {
    return parse_placement(json.as_string());
  } catch (const Error& error) {
    json.fail(error.what(), error.hint());
  }
}

}  // namespace offprof

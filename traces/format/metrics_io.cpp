#include "traces/format/metrics_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "traces/base/suggestion.h"
#include "traces/base/whole_number.h"
#include "traces/format/rules_io.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

std::vector<std::string_view> reason_names() {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < static_cast<std::size_t>(PlacementReason::kCount); ++i)
    names.push_back(to_string(static_cast<PlacementReason>(i)));
  return names;
}

/// Upper limit for the number of tensors and their total bytes. It is far below 64 bits, and above what a
/// step program can save (program_check.cpp).
constexpr std::int64_t kMostSaved = std::int64_t{1} << 60;

constexpr std::array<const char*, 2> kSpreadSuffixes = {"_min", "_max"};

void add_value(nlohmann::ordered_json& json, const MetricKey& key, double value) {
  auto& member = json[std::string(key.name)];
  if (key.unit == MetricUnit::kRatio) {
    member = value;
  } else {
    member = to_whole(value);
  }
}

void add_spread(nlohmann::ordered_json& json, const MetricKey& key, const Metrics& metrics) {
  for (const char* suffix : kSpreadSuffixes) {
    const auto found = metrics.spread.find(std::string(key.name) + suffix);
    if (found != metrics.spread.end()) json[found->first] = found->second;
  }
}

}  // namespace

nlohmann::ordered_json metrics_to_json(const Metrics& metrics) {
  auto json = nlohmann::ordered_json::object();
  for (const MetricKey& key : metric_keys()) {
    if (const auto value = key.get(metrics)) add_value(json, key, *value);
    add_spread(json, key, metrics);
  }
  return json;
}

Metrics metrics_from_json(const nlohmann::json& json, const std::string& where) {
  const JsonValue object(json, where);
  Metrics metrics;
  for (const MetricKey& key : metric_keys()) {
    if (const auto value = object.find(key.name)) {
      key.set(metrics,
              key.unit == MetricUnit::kRatio ? value->as_amount() : static_cast<double>(value->as_integer()));
    }
    for (const char* suffix : kSpreadSuffixes) {
      const std::string name = std::string(key.name) + suffix;
      if (const auto value = object.find(name)) metrics.spread[name] = value->as_integer();
    }
  }
  return metrics;
}

void check_metric_keys(const nlohmann::json& json, const std::string& where) {
  std::vector<std::string> known;
  for (const MetricKey& key : metric_keys()) {
    known.emplace_back(key.name);
    for (const char* suffix : kSpreadSuffixes) known.push_back(std::string(key.name) + suffix);
  }
  for (const auto& [name, value] : json.items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string suggestion = did_you_mean(name, known);
    JsonValue(json, where)
        .fail(fmt::format("unknown key '{}'", name),
              suggestion.empty() ? "Write the figures anew: gate --update." : suggestion);
  }
}

nlohmann::ordered_json ledger_to_json(const Ledger& ledger) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& [key, entry] : ledger) {
    json.push_back({{"placement", to_string(Placement{key.transform, key.place})},
                    {"reason", to_string(key.reason)},
                    {"tensors", entry.tensors},
                    {"bytes", entry.bytes}});
  }
  return json;
}

Ledger ledger_from_json(const nlohmann::json& json, const std::string& where) {
  static const auto reasons = reason_names();
  const JsonValue rows(json, where);
  Ledger ledger;
  LedgerEntry sum;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const JsonValue row = rows.element(i);
    const Placement placement = placement_from_json(row.at("placement"));
    const auto reason = static_cast<PlacementReason>(row.at("reason").as_one_of(reasons));
    const LedgerEntry entry = {row.at("tensors").as_integer(0, kMostSaved - sum.tensors),
                               row.at("bytes").as_integer(0, kMostSaved - sum.bytes)};
    sum = {sum.tensors + entry.tensors, sum.bytes + entry.bytes};
    ledger[{placement.place, reason, placement.transform}] = entry;
  }
  return ledger;
}

}  // namespace offprof

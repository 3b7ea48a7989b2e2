#include "traces/format/transforms_io.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/model/calibration.h"

namespace offprof {
namespace {

/// Upper limit for bytes: more than any device has, and small enough that sums over a step fit into 64 bits.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 45;

/// Writes allocations as their bytes, and a free as -1 for the first allocation, -2 for the second, ...
nlohmann::ordered_json memory_to_json(const std::vector<TransformMemory>& memory) {
  auto json = nlohmann::ordered_json::array();
  for (const TransformMemory& step : memory) json.push_back(step.bytes > 0 ? step.bytes : -1 - step.freed);
  return json;
}

TransformMemory memory_step_from_json(const JsonValue& json, std::vector<char>& is_live) {
  const std::int64_t value = json.as_integer(-static_cast<std::int64_t>(is_live.size()), kMostBytes);
  if (value > 0) {
    is_live.push_back(1);
    return {value, -1};
  }
  if (value == 0) json.fail("is an allocation of 0 bytes");
  const auto freed = static_cast<std::int32_t>(-1 - value);
  if (is_live[freed] == 0) json.fail("frees an allocation that is already freed");
  is_live[freed] = 0;
  return {0, freed};
}

/// Reads allocations and frees, which must leave exactly one allocation: the result.
std::vector<TransformMemory> memory_from_json(const JsonValue& json) {
  std::vector<TransformMemory> memory;
  std::vector<char> is_live;
  for (std::size_t i = 0; i < json.size(); ++i)
    memory.push_back(memory_step_from_json(json.element(i), is_live));
  if (std::ranges::count(is_live, 1) != 1) json.fail("must leave exactly one allocation, the result");
  return memory;
}

nlohmann::ordered_json work_to_json(const Work& work) {
  nlohmann::ordered_json json = {{"host_ns", work.host_ns},
                                 {"stream_ns", work.stream_ns},
                                 {"path_ns", work.path_ns},
                                 {"busy_ns", work.busy_ns}};
  if (work.waits()) json["wait_ns"] = work.wait_ns;
  return json;
}

Nanoseconds ns_from_json(const JsonValue& json) {
  return json.as_integer(0, kLongestMeasured);
}

Work work_from_json(const JsonValue& json) {
  Work work = {ns_from_json(json.at("host_ns")), ns_from_json(json.at("stream_ns")),
               ns_from_json(json.at("path_ns")), Work::kNoWait, ns_from_json(json.at("busy_ns"))};
  if (const auto wait = json.find("wait_ns")) work.wait_ns = ns_from_json(*wait);
  return work;
}

}  // namespace

nlohmann::ordered_json use_to_json(const TransformUse& use) {
  nlohmann::ordered_json json = {{"memory", memory_to_json(use.memory)}, {"compute_ns", use.compute_ns}};
  if (use.work != Work{}) json["work"] = work_to_json(use.work);
  return json;
}

TransformUse use_from_json(const JsonValue& json) {
  TransformUse use = {memory_from_json(json.at("memory")), ns_from_json(json.at("compute_ns"))};
  if (const auto work = json.find("work")) use.work = work_from_json(*work);
  return use;
}

namespace {

nlohmann::ordered_json cost_to_json(const TransformCost& cost) {
  return {{"dtype", cost.dtype},
          {"elements", cost.elements},
          {"encoded_bytes", cost.encoded_bytes},
          {"encode", use_to_json(cost.encode)},
          {"decode", use_to_json(cost.decode)}};
}

TransformCost cost_from_json(const JsonValue& json) {
  return {json.at("dtype").as_string(), json.at("elements").as_integer(1),
          json.at("encoded_bytes").as_integer(1, kMostBytes), use_from_json(json.at("encode")),
          use_from_json(json.at("decode"))};
}

TransformProfile profile_from_json(const JsonValue& json) {
  TransformProfile profile = {json.at("name").as_string(), json.at("lossless").as_bool(), {}};
  const JsonValue costs = json.at("costs");
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const TransformCost cost = cost_from_json(costs.element(i));
    const bool is_known = std::ranges::any_of(profile.costs, [&](const TransformCost& other) {
      return other.dtype == cost.dtype && other.elements == cost.elements;
    });
    if (is_known) costs.element(i).fail("repeats an earlier element");
    profile.costs.push_back(cost);
  }
  return profile;
}

}  // namespace

nlohmann::ordered_json transforms_to_json(const std::vector<TransformProfile>& profiles) {
  auto json = nlohmann::ordered_json::array();
  for (const TransformProfile& profile : profiles) {
    auto costs = nlohmann::ordered_json::array();
    for (const TransformCost& cost : profile.costs) costs.push_back(cost_to_json(cost));
    json.push_back({{"name", profile.name}, {"lossless", profile.is_lossless}, {"costs", std::move(costs)}});
  }
  return json;
}

std::vector<TransformProfile> transforms_from_json(const JsonValue& json) {
  std::vector<TransformProfile> profiles;
  for (std::size_t i = 0; i < json.size(); ++i) {
    TransformProfile profile = profile_from_json(json.element(i));
    if (std::ranges::find(profiles, profile.name, &TransformProfile::name) != profiles.end())
      json.element(i).fail(fmt::format("names {} for the second time", profile.name));
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace offprof

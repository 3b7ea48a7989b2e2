#include "profiler/offloading/offloading_policy.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/scheduler/placement_rules.h"
#include "engine/transforms/transform_table.h"
#include "traces/base/error.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

constexpr const char* kWhere = "settings of OffloadActivations: ";

/// Replaces the strings of members that are sizes by bytes, in the policy and its rules.
void read_sizes(nlohmann::json& settings) {
  for (auto& [key, value] : settings.items()) {
    if (key == "rules" && value.is_array()) {
      for (nlohmann::json& rule : value)
        if (rule.is_object()) read_sizes(rule);
    } else if (key.ends_with("_bytes") && value.is_string()) {
      value = parse_bytes(value.get<std::string>());
    }
  }
}

void refuse_unsupported(const PolicyFile& file, const std::string& base) {
  if (!file.parameters) return;
  throw input_error(fmt::format("{}: the policy offloads parameters, which needs a recording of the step, so "
                                "OffloadActivations cannot do it",
                                base),
                    "Train under this policy with `offprof run train.py --policy FILE --continue`, or tune a "
                    "trace that was "
                    "recorded without --offload-params.");
}

/// Replaces members of the policy by `changes`.
Policy changed(const Policy& policy, const nlohmann::json& changes) {
  nlohmann::json json = to_json(policy);
  json.update(changes);
  return policy_from_json(json, kWhere);
}

/// Returns the request for the disk of the process.
DiskRequest disk_request(bool is_compressed, const std::string& folder) {
  if (is_compressed && !folder.empty())
    throw input_error("compressed tensors are in host memory, but `disk` names a folder", "Omit `disk`.");
  if (!is_compressed && folder.empty())
    throw input_error(
        "the policy places tensors on a disk, but no folder is given for them",
        "Give one: OffloadActivations(policy, disk=\"FOLDER\"), or write `compress` for `disk` in the "
        "policy's rules to keep them compressed in host memory.");
  return {.folder = folder, .compressed = is_compressed};
}

}  // namespace

PolicyFile offloading_policy(const std::string& base, const std::string& settings) {
  PolicyFile file = load_policy(base);
  nlohmann::json changes = nlohmann::json::parse(settings);
  if (!changes.empty()) {
    if (file.policy.scheduler == SchedulerKind::kTrl &&
        changes.value("prefetch_bytes", nlohmann::json(0)) != 0)
      throw input_error(
          fmt::format("{}: TRL's rules reload on demand, so they have no prefetch window", base),
          "Base the policy on \"offload\".");
    read_sizes(changes);
    if (file.policy.name == "keep" && !changes.contains("threshold_bytes") && file.policy.rules.empty() &&
        !changes.contains("rules"))
      throw input_error("policy 'keep' offloads nothing, so the other settings have no effect",
                        "Omit them, or use \"offload\".");
    file.policy = changed(file.policy, changes);
    file.predicted.reset();
    if (file.fallback) file.fallback = FallbackPolicy{changed(file.fallback->policy, changes)};
  }
  refuse_unsupported(file, base);
  for (const std::string& name : transforms_in(file.policy.rules)) make_transform(name);  // throws
  return file;
}

void open_disk_for(const Policy& policy, Device& device, const std::string& folder) {
  static auto* opened = new std::map<Device*, std::pair<std::string, bool>>;
  if (!uses_disk(policy)) return;
  const std::pair asked(folder, compresses(policy));
  const DiskRequest request = disk_request(asked.second, folder);
  const auto found = opened->find(&device);
  if (found != opened->end() && found->second == asked) return;
  if (found != opened->end())
    throw input_error(
        fmt::format("this process offloads to {} already, and graphs may still need it",
                    found->second.second ? "compressed memory" : "the disk " + found->second.first),
        "Use one disk, or one kind of placement (disk or compress), in a process.");
  device.open_disk(request);
  opened->emplace(&device, asked);
}

}  // namespace offprof

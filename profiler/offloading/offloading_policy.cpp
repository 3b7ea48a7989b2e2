#include "profiler/offloading/offloading_policy.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/scheduler/placement_rules.h"
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

std::string disables(const PolicyFile& file) {
  if (file.parameters) return "offloads parameters";
  if (compresses(file.policy)) return "compresses tensors (placement compress)";
  if (uses_disk(file.policy)) return "places tensors on a disk (placement disk)";
  if (recomputes(file.policy)) return "recomputes tensors (placement recompute)";
  const auto transforms = transforms_in(file.policy.rules);
  return transforms.empty() ? std::string()
                            : fmt::format("encodes tensors (placement {})", transforms.front());
}

/// Throws for a policy that needs more than host memory and the saved tensors themselves.
void refuse_unsupported(const PolicyFile& file, const std::string& base) {
  const std::string what = disables(file);
  if (what.empty()) return;
  throw input_error(
      fmt::format(
          "{}: the policy {}, which OffloadActivations cannot do: it only moves saved tensors to host "
          "memory",
          base, what),
      "Train under this policy with `offprof run train.py --policy FILE --continue`, or tune for policies "
      "without it: no --lossy, no --disk-memory, and a trace that was recorded without --transforms.");
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
    nlohmann::json policy = to_json(file.policy);
    if (file.policy.name == "keep" && !changes.contains("threshold_bytes") && file.policy.rules.empty() &&
        !changes.contains("rules"))
      throw input_error("policy 'keep' offloads nothing, so the other settings have no effect",
                        "Omit them, or use \"offload\".");
    policy.update(changes);
    file.policy = policy_from_json(policy, kWhere);
    file.predicted.reset();
  }
  refuse_unsupported(file, base);
  return file;
}

}  // namespace offprof

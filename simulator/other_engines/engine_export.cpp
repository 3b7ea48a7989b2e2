#include "simulator/other_engines/engine_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "engine/scheduler/placement_rules.h"
#include "simulator/other_engines/export_targets.h"

namespace offprof {
namespace {

constexpr std::array<ExportTarget, 7> kTargets = {{
    {"trl", "TRL", "Python", export_to_trl},
    {"torchtune", "torchtune", "Python", export_to_torchtune},
    {"pytorch", "PyTorch", "Python", export_to_pytorch, true},
    {"transformers", "transformers", "Python", export_to_transformers},
    {"deepspeed", "DeepSpeed", "JSON", export_to_deepspeed},
    {"megatron", "Megatron-LM", "flags", export_to_megatron},
    {"fsdp2", "FSDP2", "Python", export_to_fsdp2},
}};

}  // namespace

std::span<const ExportTarget> export_targets() {
  return kTargets;
}

std::vector<std::string> missing_features(std::string_view title, const PolicyFile& file) {
  const Policy& policy = file.policy;
  std::vector<std::string> missing;
  if (policy.prefetch_bytes > 0)
    missing.push_back(fmt::format("{} has no prefetch window; the policy's is {}.", title,
                                  format_bytes(policy.prefetch_bytes)));
  if (policy.host_memory_bytes)
    missing.push_back(fmt::format("{} has no limit of host memory; the policy's is {}.", title,
                                  format_bytes(*policy.host_memory_bytes)));
  if (compresses(policy)) {
    missing.push_back(fmt::format("{} does not compress tensors.", title));
  } else if (uses_disk(policy)) {
    missing.push_back(fmt::format("{} has no disk for saved tensors.", title));
  }
  if (const auto transforms = transforms_in(policy.rules); !transforms.empty())
    missing.push_back(
        fmt::format("{} does not encode tensors; the policy has {}.", title, fmt::join(transforms, ", ")));
  return missing;
}

}  // namespace offprof

#include "traces/model/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "traces/base/error.h"

namespace offprof {
namespace {

// TRL 0.24, trl/models/activation_offloading.py. OffloadActivations: min_offload_size=1024,
// max_fwd_stash_size=5. get_act_offloading_ctx_manager, which the trainers use, keeps what the output head of
// a causal language model saves.
constexpr Bytes kTrlThreshold = 1024;
constexpr std::int64_t kTrlStash = 5;
constexpr const char* kTrlOutputHead = "*lm_head";

Policy keep() {
  Policy policy;
  policy.threshold_bytes = std::nullopt;
  return policy;
}

Policy trl() {
  Policy policy;
  policy.scheduler = SchedulerKind::kTrl;
  policy.threshold_bytes = kTrlThreshold;
  policy.stash_count = kTrlStash;
  policy.copy_streams = 1;
  return policy;
}

Policy trl_trainer() {
  Policy policy = trl();
  policy.rules.push_back({.module = kTrlOutputHead, .placement = {}});
  return policy;
}

struct Preset {
  std::string_view name;
  Policy (*make)();
};

constexpr std::array<Preset, 4> kPresets = {{
    {"keep", keep},
    {"offload", [] { return Policy(); }},
    {"trl", trl},
    {"trl-trainer", trl_trainer},
}};

/// Returns `64 KiB` if that is exact, as for most settings; otherwise three digits.
std::string format_setting(Bytes bytes) {
  struct Step {
    Bytes size;
    const char* name;
  };
  constexpr std::array<Step, 4> kSteps = {{{kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}, {1, "B"}}};
  constexpr Bytes kMostPrinted = 1024;
  for (const auto& [size, name] : kSteps) {
    if (bytes >= size && bytes % size == 0 && bytes / size < kMostPrinted) {
      return fmt::format("{} {}", bytes / size, name);
    }
  }
  return format_bytes(bytes);
}

std::string describe_rules(const std::vector<PolicyRule>& rules) {
  return fmt::format("{} rule{}", rules.size(), rules.size() == 1 ? "" : "s");
}

/// Describes the choice of tensors that move.
std::string describe_choice(const Policy& policy) {
  if (!policy.threshold_bytes) return describe_rules(policy.rules);
  std::string threshold = fmt::format("threshold {}", format_setting(*policy.threshold_bytes));
  if (!policy.tensors) return threshold;
  const std::string plan =
      fmt::format("a plan of {} tensor{}", policy.tensors->size(), policy.tensors->size() == 1 ? "" : "s");
  return *policy.threshold_bytes > 0 ? plan + ", " + threshold : plan;
}

std::string describe_rules_and_choice(const Policy& policy) {
  std::string choice = describe_choice(policy);
  if (policy.rules.empty() || !policy.threshold_bytes) return choice;
  return describe_rules(policy.rules) + ", otherwise " + choice;
}

std::string describe_stash(const Policy& policy) {
  if (policy.stash_count && policy.stash_bytes) {
    return fmt::format("stash {} up to {}", *policy.stash_count, format_setting(*policy.stash_bytes));
  }
  if (policy.stash_bytes) return fmt::format("stash {}", format_setting(*policy.stash_bytes));
  return policy.stash_count.value_or(0) > 0 ? fmt::format("stash {}", *policy.stash_count) : "no stash";
}

std::string describe_prefetch(const Policy& policy) {
  const bool on_demand = policy.prefetch_bytes == 0 || traits_of(policy.scheduler).has_few_settings;
  return on_demand ? "reload on demand" : fmt::format("prefetch {}", format_setting(policy.prefetch_bytes));
}

}  // namespace

Policy preset_policy(const std::string& name) {
  for (const Preset& preset : kPresets) {
    if (name != preset.name) continue;
    Policy policy = preset.make();
    policy.name = name;
    return policy;
  }
  throw input_error(fmt::format("unknown policy '{}'", name),
                    fmt::format("Presets: {}.", fmt::join(preset_names(), ", ")));
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

bool uses_disk(const Policy& policy) {
  return std::ranges::any_of(policy.rules,
                             [](const PolicyRule& rule) { return takes_disk(rule.placement.place); });
}

bool compresses(const Policy& policy) {
  return std::ranges::any_of(policy.rules,
                             [](const PolicyRule& rule) { return rule.placement.place == Place::kCompress; });
}

bool has_one_copy_stream(const Policy& policy) {
  return traits_of(policy.scheduler).has_few_settings || policy.copy_streams == 1;
}

std::string describe(const Policy& policy) {
  if (!policy.threshold_bytes && policy.rules.empty()) return "nothing is offloaded";
  const SchedulerTraits& traits = traits_of(policy.scheduler);
  std::string text = traits.rules.empty() ? "" : fmt::format("{}, ", traits.rules);
  text += fmt::format("{}, {}, {}", describe_rules_and_choice(policy), describe_stash(policy),
                      describe_prefetch(policy));
  if (!traits.has_few_settings && policy.copy_streams == 1) text += ", one copy stream";
  if (policy.host_memory_bytes)
    text += fmt::format(", host memory {}", format_setting(*policy.host_memory_bytes));
  if (policy.disk_memory_bytes) text += fmt::format(", disk {}", format_setting(*policy.disk_memory_bytes));
  if (uses_disk(policy)) text += fmt::format(", disk buffer {}", format_setting(policy.disk_buffer_bytes));
  return text;
}

}  // namespace offprof

#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace offprof {

/// Set of decision rules. Each is one scheduler of engine/scheduler.
enum class SchedulerKind { kOffload, kTrl };

/// Properties of a scheduler on which executors, reports and readers of policies depend.
struct SchedulerTraits {
  SchedulerKind kind = SchedulerKind::kOffload;
  std::string_view name{};   ///< in policy files
  std::string_view rules{};  ///< its rules in text for people: `TRL's rules`; empty for the default scheduler
  /// True if each copy is of one saved tensor, dense, and is never shared. Otherwise it is of the tensor's
  /// storage, and is shared by all saved tensors of that storage.
  bool copies_tensors = false;
  /// True if views of parameters and of buffers may move, so that rules of a policy match them too.
  bool moves_parameter_views = false;
  /// True if a policy can only set the threshold, the number in the stash, and rules that keep tensors on the
  /// device. There is one copy stream and no prefetch.
  bool has_few_settings = false;
  std::string_view stash_unit{};  ///< unit of `stash_count`, with a space before it; empty: offloaded tensors
};

/// The traits of all schedulers, in the order of SchedulerKind.
inline constexpr std::array<SchedulerTraits, 2> kSchedulers = {{
    {.kind = SchedulerKind::kOffload, .name = "offload"},
    {.kind = SchedulerKind::kTrl,
     .name = "trl",
     .rules = "TRL's rules",
     .copies_tensors = true,
     .moves_parameter_views = true,
     .has_few_settings = true,
     .stash_unit = " ids"},
}};

constexpr const SchedulerTraits& traits_of(SchedulerKind kind) {
  return kSchedulers.at(static_cast<std::size_t>(kind));
}

static_assert([] {
  for (std::size_t i = 0; i < kSchedulers.size(); ++i)
    if (kSchedulers[i].kind != static_cast<SchedulerKind>(i)) return false;
  return true;
}());

}  // namespace offprof

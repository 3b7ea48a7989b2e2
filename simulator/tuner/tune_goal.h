#pragma once

#include <optional>

#include "traces/base/units.h"

namespace offprof {

/// Goal of the tuner, and the extent of its search.
struct TuneGoal {
  /// If set, the goal is the least step time within this much device memory. Device memory is the peak or,
  /// with a caching allocator, all memory that it takes of the device. If nullopt, the goal is the least
  /// device memory within `max_slowdown` of the step time without offloading (0.05: five percent).
  std::optional<Bytes> memory_budget_bytes;
  double max_slowdown = 0.05;
  /// Memory that steps can take of the device: no policy that needs more is chosen, whatever the goal.
  /// nullopt: no limit. A memory budget takes precedence over it.
  std::optional<Bytes> device_memory_bytes;
  std::optional<Bytes> host_memory_bytes;  ///< cap for every policy
  std::optional<Bytes> disk_memory_bytes;  ///< cap of disk space for every policy, if the link has a disk
  /// True: also search sets of tensors that no threshold can select.
  bool searches_plans = false;
  /// True: placements may use lossy transforms. Placements are searched only if the trace has the costs of
  /// transforms, or the link has a disk.
  bool allows_loss = false;
  unsigned threads = 0;  ///< 0: one per core; the result does not depend on it
  /// True: policies with equal decisions at the beginning of the step share its replay. The result does not
  /// depend on it.
  bool shares_replays = true;

  /// Returns the device memory that a chosen policy may take: the budget or, without one, the device's.
  std::optional<Bytes> memory_limit() const {
    return memory_budget_bytes ? memory_budget_bytes : device_memory_bytes;
  }
};

}  // namespace offprof

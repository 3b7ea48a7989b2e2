#pragma once

#include <cstddef>
#include <vector>

#include "simulator/replay/step.h"
#include "simulator/tuner/settings/movable_version.h"
#include "traces/base/units.h"

namespace offprof {

/// Lower bound on the device memory of a step under the offload scheduler, whichever tensors move, and the
/// memory added by those that stay.
struct LeastMemory {
  /// Events from `begin` to below `end`. After each of them the version's storage is on the device only if
  /// the version was not moved.
  struct Gap {
    std::size_t version = 0;  ///< index in movable_versions
    std::size_t begin = 0, end = 0;
  };
  /// Bytes after each of Step::events(): storages that the step program holds, those of saved tensors that
  /// may not move, and those that backward has unpacked and not released. Each storage counts once, as if a
  /// reload went back to the tensor's own storage.
  std::vector<Bytes> after_event;
  Bytes peak = 0;  ///< the highest of these sums, also within events
  std::size_t peak_event = 0;
  /// Do not overlap for one storage: if several versions wait, the gap is that of the one saved first.
  std::vector<Gap> gaps;
};

LeastMemory least_memory_of(const Step& step, const std::vector<MovableVersion>& versions);

}  // namespace offprof

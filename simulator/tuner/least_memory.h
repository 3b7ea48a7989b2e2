#pragma once

#include <cstddef>
#include <vector>

#include "simulator/step.h"
#include "simulator/tuner/movable_version.h"
#include "traces/units.h"

namespace offprof {

/// What device memory must hold whatever moves under the offload scheduler, and what it holds beside that
/// where something stays.
struct LeastMemory {
  /// Events from `begin` to below `end`: after each the version's storage is there only if it was not moved.
  struct Gap {
    std::size_t version = 0;  ///< index in movable_versions
    std::size_t begin = 0, end = 0;
  };
  /// After each of Step::events(): the storages that the program holds, those of saved tensors that may not
  /// move, and those that backward has asked for and not released. Each counts once, as if a reload went back
  /// to where the tensor was.
  std::vector<Bytes> after_event;
  Bytes peak = 0;  ///< the highest of it, within events as well
  std::size_t peak_event = 0;
  std::vector<Gap> gaps;  ///< of one storage at a time: where several versions wait, the one saved first
};

LeastMemory least_memory_of(const Step& step, const std::vector<MovableVersion>& versions);

}  // namespace offprof

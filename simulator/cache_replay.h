#pragma once

#include <optional>

#include "simulator/step.h"
#include "traces/allocator_state.h"
#include "traces/policy.h"
#include "traces/units.h"

namespace offprof {

/// Over how many steps the caching allocator is followed, and what it may take of the device.
struct CacheSetting {
  int steps = 1;
  std::optional<Bytes> device_memory_bytes{};  ///< nullopt: without end
  /// What the device has in all: the allocator's settings name fractions of it. 0: not known, then it is
  /// device_memory_bytes, or without end.
  Bytes device_total_bytes = 0;
};

/// What the caching allocator comes to.
struct CachePrediction {
  CacheUse use;      ///< the most over the steps; where they do not fit, as if nothing limited them
  bool fits = true;  ///< they run within the device's memory, and the fraction of it in the settings
};

/// Follows PyTorch's CUDA caching allocator, in our model of it, through steps under `policy`, from the state
/// in which `run` begins its measured ones. nullopt: the step's device has no such allocator.
std::optional<CachePrediction> predict_cache(const Step& step, const Policy& policy,
                                             const CacheSetting& setting);

}  // namespace offprof

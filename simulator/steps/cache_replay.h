#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"
#include "traces/base/units.h"
#include "traces/model/allocator_state.h"
#include "traces/model/link.h"
#include "traces/model/metrics.h"
#include "traces/model/policy.h"

namespace offprof {

/// Number of steps for which the caching allocator is followed, and its limit of device memory.
struct CacheSetting {
  int steps = 1;
  std::optional<Bytes> device_memory_bytes{};  ///< nullopt: no limit
  /// Total memory of the device; the allocator's settings name fractions of it. 0: not known; then it is
  /// device_memory_bytes, or unlimited if that is nullopt.
  Bytes device_total_bytes = 0;
  /// Times matter only to a program that frees memory which other streams use: see StepProgram::free_points.
  Link link = kAnyLink;
};

/// Predicted memory use of the caching allocator.
struct CachePrediction {
  CacheUse use;      ///< maximum over the steps; if they do not fit, the use without any limit
  bool fits = true;  ///< the steps run within the device's memory and the settings' fraction of it
};

/// Follows our model of PyTorch's CUDA caching allocator through steps under `policy`. It starts from the
/// allocator state at the beginning of the measured steps of `run`. Returns nullopt if the step's device has
/// no such allocator.
std::optional<CachePrediction> predict_cache(const Step& step, const Policy& policy,
                                             const CacheSetting& setting);

/// Sets the figures of the caching allocator.
void add_cache_use(const CacheUse& use, Metrics& metrics);

/// Predicts a step under `policy`: what `replay` returns over the setting's link, and the figures of
/// predict_cache.
Metrics predict_step(const Step& step, const Policy& policy, const CacheSetting& setting);
/// Same, but returns nullopt, and sooner, if the step takes more than `most_taken` (device_bytes_taken).
std::optional<Metrics> predict_step_within(Bytes most_taken, const Step& step, const Policy& policy,
                                           const CacheSetting& setting);

/// Memory that the caching allocator holds from an event on.
struct ReservedAtEvent {
  std::size_t event = 0;  ///< index in Step::events()
  Bytes bytes = 0;
};

/// Returns the allocator's reserved memory over the last of the steps that predict_cache follows: one entry
/// for the start of the step, as event 0, and one for each change. Empty if the step's device has no such
/// allocator.
std::vector<ReservedAtEvent> reserved_over_step(const Step& step, const Policy& policy,
                                                const CacheSetting& setting);

}  // namespace offprof

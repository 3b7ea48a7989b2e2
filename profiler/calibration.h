#pragma once

#include <cstddef>
#include <vector>

#include "engine/calibration.h"
#include "engine/device.h"
#include "profiler/trainer.h"
#include "traces/calibration.h"

namespace offprof {

struct StepCalibration {
  Calibration costs;  ///< all but reload_per_mib
  std::vector<Nanoseconds>
      offloaded_extra_ns;  ///< compute with everything offloaded, over the round's plain step
  /// The cores that compute and copy were not as far apart from each other all the time, so the figures are
  /// of two machines.
  bool cores_moved = false;
};

/// Measures on a real device what offloading costs beside the copies: hooks, commands and events on tensors
/// made up, the rest by steps with nothing offloaded, which now and then stand still, or have copies beside
/// them; their rounds are interleaved. `copies`: of the same device. `hooks`: packs and unpacks in a step.
/// `backward_order`: as Trainer::step takes it.
StepCalibration calibrate(Device& device, Trainer& trainer, const CopyCalibration& copies, std::size_t hooks,
                          const std::vector<SavedId>& backward_order);

}  // namespace offprof

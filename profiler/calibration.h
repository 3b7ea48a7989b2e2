#pragma once

#include <cstddef>

#include "engine/calibration.h"
#include "engine/device.h"
#include "profiler/trainer.h"
#include "traces/calibration.h"

namespace offprof {

/// Measures on a real device what offloading costs beside the copies: hooks, commands and events on tensors
/// made up, the rest by steps with nothing offloaded, which now and then stand still, or have copies beside
/// them; their rounds are interleaved. `copies`: of the same device. `hooks`: packs and unpacks in a step.
Calibration calibrate(Device& device, Trainer& trainer, const CopyCalibration& copies, std::size_t hooks);

}  // namespace offprof

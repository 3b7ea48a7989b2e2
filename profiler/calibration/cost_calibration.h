#pragma once

#include <cstddef>
#include <vector>

#include "engine/devices/device.h"
#include "engine/devices/link_calibration.h"
#include "profiler/steps/step_script.h"
#include "traces/model/calibration.h"

namespace offprof {

struct StepCalibration {
  Calibration costs;  ///< all costs except reload_per_mib
  /// Extra compute time with everything offloaded, compared with the plain step of the same round.
  std::vector<Nanoseconds> offloaded_extra_ns;
  /// The distance between the computing and the copying core changed, so the figures mix two machine states.
  bool cores_moved = false;
};

/// Rounds of a calibration with short steps.
inline constexpr int kMostCalibrationRounds = 15;

/// Measures on a real device what offloading costs besides the copies. Hooks, commands and events are
/// measured on synthetic tensors. The rest is measured in steps with nothing offloaded, of which some pause
/// now and then and some have concurrent copies; the rounds of these steps are interleaved. `copies` is of
/// the same device, `hooks` is the number of pack and unpack hooks in a step, and `backward_order` is that of
/// a StepGuide. `most_rounds` limits the rounds. `device` must outlive the script.
StepScript<StepCalibration> calibrate(Device& device, CopyCalibration copies, std::size_t hooks,
                                      std::vector<SavedId> backward_order,
                                      int most_rounds = kMostCalibrationRounds);

}  // namespace offprof

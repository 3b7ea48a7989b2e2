#pragma once

#include <vector>

#include "engine/device.h"
#include "traces/calibration.h"

namespace offprof {

/// What copies cost, measured on an idle device.
struct CopyCalibration {
  std::vector<CopyTiming> d2h, h2d;  ///< from a few bytes to several MiB
  Measured start{};                  ///< see Calibration; 0 on a device that computes beside the host
  /// Before and after; empty where copies have no core of their own.
  std::vector<Nanoseconds> core_to_core_ns{};
};

/// Leaves no bytes behind, and copy records and exposed time taken.
CopyCalibration calibrate_copies(Device& device);

}  // namespace offprof

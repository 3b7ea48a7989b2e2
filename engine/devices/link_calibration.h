#pragma once

#include <vector>

#include "engine/devices/device.h"
#include "traces/model/calibration.h"

namespace offprof {

/// Copy times, measured on an idle device.
struct CopyCalibration {
  std::vector<CopyTiming> d2h, h2d;  ///< from a few bytes to several MiB
  MeasuredQuartiles start{};         ///< see Calibration; 0 on a device other than the host
  /// Measured before and after the copies; empty if copies have no core of their own.
  std::vector<Nanoseconds> core_to_core_ns{};
};

/// Measures copies of several sizes in both directions. Frees the memory that it used, and discards the
/// device's copy records and stall time.
CopyCalibration calibrate_copies(Device& device);

}  // namespace offprof

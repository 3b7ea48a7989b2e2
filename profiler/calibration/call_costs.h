#pragma once

#include "engine/devices/device.h"
#include "engine/devices/link_calibration.h"
#include "traces/model/calibration.h"

namespace offprof {

/// Returns a calibration with the costs of `copies`, which are of the same device, and of the engine's calls
/// (Calibration::hook, command and event): the time that they take of the thread that calls, measured on
/// synthetic tensors. Discards the device's copy records and stall time.
Calibration calibrate_calls(Device& device, const CopyCalibration& copies);

}  // namespace offprof

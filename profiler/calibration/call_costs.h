#pragma once

#include "engine/devices/device.h"
#include "traces/model/calibration.h"

namespace offprof {

/// Measures, on synthetic tensors, the time that the engine takes of the thread that calls it: sets
/// Calibration::hook, command and event. Discards the device's copy records and stall time.
void calibrate_calls(Device& device, Calibration& calibration);

}  // namespace offprof

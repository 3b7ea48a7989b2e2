#pragma once

#include "engine/devices/device.h"
#include "traces/model/calibration.h"

namespace offprof {

/// Measures single transfers through the device's disk, a few sizes in each direction, and stores their times
/// in Calibration::disk_write and disk_read. Does nothing if the device has no disk, or if the disk has no
/// room. Throws Error (environment) if the disk fails.
void calibrate_disk(Device& device, Calibration& calibration);

}  // namespace offprof

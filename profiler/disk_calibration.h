#pragma once

#include "engine/device.h"
#include "traces/calibration.h"

namespace offprof {

/// What single transfers through the device's disk take, a few sizes of each direction, into
/// Calibration::disk_write and disk_read. Does nothing where the device has no disk, or that has no room.
/// Throws Error (environment) where the disk fails.
void calibrate_disk(Device& device, Calibration& calibration);

}  // namespace offprof

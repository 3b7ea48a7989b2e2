#pragma once

#include <functional>
#include <string>

#include "engine/devices/device.h"
#include "engine/devices/virtual_gpu/model/gpu_fit.h"

namespace offprof {

/// Measures a GPU for fit_profile: a few operators, launches, and copies to pinned memory. Takes some seconds
/// and up to 2 GiB of device memory, all of which is freed. The GPU should have no other work. `progress` is
/// called with a phrase for each measurement. Throws Error (input) if the device is no GPU.
GpuMeasurements measure_gpu(Device& device, const std::function<void(const std::string&)>& progress);

}  // namespace offprof

#pragma once

#include <cuda_runtime_api.h>

#include "engine/devices/virtual_gpu/model/profile.h"

namespace offprof::runtime {

/// Returns the properties of a GPU with that profile, as cudaGetDeviceProperties reports them.
cudaDeviceProp device_properties(const DeviceProfile& profile);

/// Returns an attribute of the GPU; 0 for one that it does not have. The driver's attributes
/// (CUdevice_attribute) have the same numbers.
int device_attribute(const DeviceProfile& profile, cudaDeviceAttr attribute);

}  // namespace offprof::runtime

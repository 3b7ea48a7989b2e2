#pragma once

#include "engine/devices/virtual_gpu/model/profile.h"

namespace offprof {

/// Returns what the driver reports of a GPU: names, memory, multiprocessors. The other figures of the profile
/// are not set. Throws Error (environment) if the driver does not answer.
DeviceProfile properties_of_gpu(int index);

}  // namespace offprof

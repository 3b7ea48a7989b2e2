#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/devices/device.h"

namespace offprof {

/// Opens a virtual GPU in functional mode: memory is real and copies move real bytes, in an order drawn from
/// `seed`. The stream race checker watches every call. No memory of the previous device may be in use.
std::unique_ptr<Device> open_functional_mode_gpu(std::uint64_t seed);

}  // namespace offprof

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/device.h"

namespace offprof {

/// The virtual GPU with real memory and copies that are really made, in an order drawn from `seed`, every
/// call watched by the stream-order check. Nothing of the device before it may be in use.
std::unique_ptr<Device> open_carried_out_gpu(std::uint64_t seed);

}  // namespace offprof

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/transforms/transform.h"
#include "traces/program.h"
#include "traces/transform_cost.h"

namespace offprof {

/// What the transforms take on the device, over tensors such as the program saves and they may pack: memory,
/// in the order in which it is asked for, and time. Runs each on random values; the device must be idle.
/// Throws Error: one of them breaks its contract (transform.h).
std::vector<TransformProfile> profile_transforms(Device& device,
                                                 std::span<const std::shared_ptr<const Transform>> transforms,
                                                 const Program& program);

}  // namespace offprof

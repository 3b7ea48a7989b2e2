#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/devices/device.h"
#include "engine/transforms/transform.h"
#include "traces/model/step_program.h"
#include "traces/model/transform_cost.h"

namespace offprof {

/// Measures the transforms on the device, over tensors like those that the program saves and they may encode:
/// memory, in the order in which it is requested, and time. Runs each on random values; the device must be
/// idle. Throws Error if one of them breaks its contract (transform.h).
std::vector<TransformProfile> profile_transforms(Device& device,
                                                 std::span<const std::shared_ptr<const Transform>> transforms,
                                                 const StepProgram& program);

}  // namespace offprof

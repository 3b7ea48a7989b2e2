#pragma once

#include "engine/autograd/offload_step.h"
#include "engine/devices/device.h"
#include "engine/parameters/parameter_offloader.h"
#include "profiler/recording/step_result.h"

namespace offprof {

/// Waits until the device is idle, and sets all that it and the offloader count in a step to zero.
/// `offloader` may be nullptr.
void reset_counters(Device& device, ParameterOffloader* offloader);

/// Takes what the device, the offloader and the step counted since reset_counters, after the device has
/// become idle. `offloader` may be nullptr.
void take_counters(Device& device, ParameterOffloader* offloader, const OffloadStep& step,
                   StepResult& result);

}  // namespace offprof

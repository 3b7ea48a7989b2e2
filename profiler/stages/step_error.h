#pragma once

#include <exception>
#include <string>

#include "engine/devices/device.h"
#include "traces/base/error.h"

namespace offprof {

/// Describes a refusal of device memory: what was requested, and the memory in use.
std::string describe(const OutOfMemory& refusal);

/// Returns the error for a refusal of device memory in a step that must not run out of it.
Error out_of_memory_error(const OutOfMemory& refusal);

/// Forgets refusals of earlier steps. Call it before the steps whose errors step_error converts.
void forget_refusals(Device& device);

/// Converts an exception that stopped the steps of `program`: to the refusal of the device that caused it, or
/// to an Error (input) with LibTorch's reason. Removes the device's limits.
Error step_error(const std::exception& error, Device& device, const std::string& program);

/// Removes the limits of steps for work outside of them.
void lift_limits(Device& device);

}  // namespace offprof

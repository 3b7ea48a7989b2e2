#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "engine/transforms/transform.h"

namespace offprof {

/// Returns the violations of the Transform contract by `transform` on `device`, a sentence each. Tries values
/// of every type that it takes: constant and extreme ones, NaN and infinities, 1 to some hundred thousand
/// elements. Of its memory only encoded_bytes() is checked; profile_transforms checks the rest. For the tests
/// of transforms, including a user's own.
std::vector<std::string> breaches_of_contract(const Transform& transform, c10::Device device);

}  // namespace offprof

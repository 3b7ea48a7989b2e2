#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "engine/transforms/transform.h"

namespace offprof {

/// What of a Transform's contract `transform` does not keep on that device, a sentence each: tried on values
/// of every type that it takes, constant and extreme ones, NaN and infinities, of 1 to some hundred thousand
/// elements. Memory is held against packed_bytes() alone; profile_transforms holds the rest against it. For
/// the tests of transforms, a user's own among them.
std::vector<std::string> breaches_of_contract(const Transform& transform, c10::Device device);

}  // namespace offprof

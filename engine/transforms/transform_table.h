#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/transforms/transform.h"

namespace offprof {

/// The transform of that name, with its parameters: `quantize:uint8:128`. Throws Error (input): there is
/// none, or it does not take those parameters.
std::shared_ptr<const Transform> make_transform(const std::string& name);

/// As rules may name them: each, and with a usual parameter where it takes one.
std::vector<std::string> transform_names();

}  // namespace offprof

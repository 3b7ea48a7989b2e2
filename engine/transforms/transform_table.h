#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/transforms/transform.h"

namespace offprof {

/// Returns the transform with that name and parameters: `quantize:uint8:128`. Throws Error (input) if it does
/// not exist or does not accept the parameters.
std::shared_ptr<const Transform> make_transform(const std::string& name);

/// Returns the names that rules may use: each transform's, and that with a usual parameter if it takes one.
std::vector<std::string> transform_names();

}  // namespace offprof

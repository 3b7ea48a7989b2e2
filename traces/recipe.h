#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/transform_cost.h"

namespace offprof {

/// How backward can make a saved content again, to the bit: by operators, from what is there anyway.
struct Recipe {
  std::int32_t tensor = 0;  ///< index in Program::saved: the first saved tensor of that content
  std::string op;           ///< `aten::gelu`; of several as they run, `aten::rsqrt, aten::mul`
  /// Saved tensors before it whose contents the operator takes, each once. What else it takes is older than
  /// the step and stays as it is: parameters, buffers, inputs.
  std::vector<std::int32_t> sources;
  TransformUse use{};  ///< of making it; the result is the content's storage

  bool operator==(const Recipe&) const = default;
};

}  // namespace offprof

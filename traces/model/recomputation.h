#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/model/transform_cost.h"

namespace offprof {

/// Recompute steps of a saved content: the operators with which backward reproduces it bit by bit from data
/// that is available anyway.
struct Recomputation {
  std::int32_t tensor = 0;  ///< index in Program::saved: the first saved tensor with that content
  std::string op;           ///< `aten::gelu`; several operators in their order: `aten::rsqrt, aten::mul`
  /// Earlier saved tensors whose contents the operators read, each once. Their other operands are older than
  /// the step and do not change: parameters, buffers, inputs.
  std::vector<std::int32_t> sources;
  TransformUse use{};  ///< cost of the recomputation; its result is the content's storage

  bool operator==(const Recomputation&) const = default;
};

}  // namespace offprof

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/units.h"
#include "traces/work.h"

namespace offprof {

/// One allocation or free of device memory while a transform runs.
struct TransformMemory {
  Bytes bytes = 0;          ///< allocated; 0: a free
  std::int32_t freed = -1;  ///< of a free: which of the allocations before it, counted from 0

  bool operator==(const TransformMemory&) const = default;
};

/// What it takes to pack a tensor, or to unpack it: measured, and the same each time but for its duration.
struct TransformUse {
  std::vector<TransformMemory> memory;  ///< in order; what is not freed is the result
  Nanoseconds compute_ns = 0;
  Work work{};  ///< where a device computes beside the host and tells

  bool operator==(const TransformUse&) const = default;
};

/// What a transform makes of tensors of one dtype and so many elements.
struct TransformCost {
  std::string dtype;
  std::int64_t elements = 0;
  Bytes packed_bytes = 0;
  TransformUse pack, unpack;

  bool operator==(const TransformCost&) const = default;
};

/// A transform as it was measured over the tensors of a step.
struct TransformProfile {
  std::string name;  ///< as placements name it
  bool is_lossless = true;
  std::vector<TransformCost> costs;  ///< of the dtypes that it takes

  bool operator==(const TransformProfile&) const = default;
};

}  // namespace offprof

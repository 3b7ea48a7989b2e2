#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/work.h"

namespace offprof {

/// One allocation or free of device memory while a transform runs.
struct TransformMemory {
  Bytes bytes = 0;          ///< bytes allocated; 0: a free
  std::int32_t freed = -1;  ///< for a free: index of the earlier allocation, from 0

  bool operator==(const TransformMemory&) const = default;
};

/// Cost of encoding or decoding a tensor. It is measured, and the same each time except for the duration.
struct TransformUse {
  std::vector<TransformMemory> memory;  ///< in order; the allocation that is not freed is the result
  Nanoseconds compute_ns = 0;
  Work work{};  ///< only if a device computes beside the host and reports its work

  bool operator==(const TransformUse&) const = default;
};

/// Result and cost of a transform for tensors of one dtype and number of elements.
struct TransformCost {
  std::string dtype;
  std::int64_t elements = 0;
  Bytes encoded_bytes = 0;
  TransformUse encode, decode;

  bool operator==(const TransformCost&) const = default;
};

/// Measured costs of a transform for the tensors of a step.
struct TransformProfile {
  std::string name;  ///< name in placements
  bool is_lossless = true;
  std::vector<TransformCost> costs;  ///< for the dtypes that it accepts

  bool operator==(const TransformProfile&) const = default;
};

}  // namespace offprof

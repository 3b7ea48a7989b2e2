#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/base/units.h"
#include "traces/model/placement.h"

namespace offprof {

/// Rule of a policy: a condition on saved tensors, and their placement. All members that are set must match;
/// a rule that sets none matches every tensor. Patterns follow file-name syntax: `*`, `?`, `[a-c]`.
struct PolicyRule {
  std::optional<std::string> op{};  ///< pattern of the operator that saves the tensor, as `aten::gelu*`
  /// Pattern of the path of the submodule that saves the tensor, as `layers.*.mlp`.
  std::optional<std::string> module{};
  std::optional<std::string> dtype{};             ///< pattern of the tensor's type, as `float*`
  std::optional<std::int64_t> rank{};             ///< number of dimensions
  std::optional<Bytes> min_bytes{}, max_bytes{};  ///< of the storage, both inclusive
  /// Range of positions among the tensors that autograd saves in a step, counted from 0, both inclusive.
  std::optional<std::int32_t> first{}, last{};
  Placement placement{};

  bool operator==(const PolicyRule&) const = default;
};

}  // namespace offprof

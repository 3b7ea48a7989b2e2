#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/placement.h"
#include "traces/units.h"

namespace offprof {

/// One rule of a policy: the saved tensors that it matches, and what becomes of them. All that is set must
/// hold; a rule that sets nothing matches every tensor. Patterns are those of file names: `*`, `?`, `[a-c]`.
struct PolicyRule {
  std::optional<std::string> op{};  ///< pattern of the operator that saves it, as `aten::gelu*`
  std::optional<std::string>
      module{};  ///< pattern of the submodule's path in which it does, as `layers.*.mlp`
  std::optional<std::string> dtype{};             ///< pattern of its type, as `float*`
  std::optional<std::int64_t> rank{};             ///< its number of dimensions
  std::optional<Bytes> min_bytes{}, max_bytes{};  ///< of its storage, both inclusive
  /// Positions among the tensors that autograd saves in a step, counted from 0, both inclusive.
  std::optional<std::int32_t> first{}, last{};
  Placement placement{};

  bool operator==(const PolicyRule&) const = default;
};

}  // namespace offprof

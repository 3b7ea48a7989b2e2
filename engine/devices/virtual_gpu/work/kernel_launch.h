#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/base/units.h"

namespace offprof {

/// A kernel launch, or a call of a library that launches its own kernels.
struct KernelLaunch {
  std::string_view name{};  ///< demangled; the function of a library call: `cublasGemmEx`
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  /// Device memory that the kernel's arguments point to; nullopt: its parameters are not known.
  std::optional<Bytes> argument_bytes{};

  double blocks() const { return static_cast<double>(grid[0]) * grid[1] * grid[2]; }
  double threads_per_block() const { return static_cast<double>(block[0]) * block[1] * block[2]; }
};

/// Returns the kernel's own name: `softmax_warp_forward` of
/// `void at::native::(anonymous namespace)::softmax_warp_forward<float, float>(float*, int)`.
std::string_view base_name(std::string_view demangled);

}  // namespace offprof

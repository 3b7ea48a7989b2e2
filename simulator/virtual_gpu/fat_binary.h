#pragma once

#include <optional>
#include <vector>

namespace offprof {

/// One form in which a fat binary holds its kernels. Compute capabilities are written as 10 * major + minor.
struct GpuCode {
  int capability = 0;            ///< 86: `sm_86`; as PTX `compute_86`
  bool is_ptx = false;           ///< compiled by the driver for the card that it meets
  bool is_for_one_card = false;  ///< `sm_90a`: no other capability runs it

  bool operator==(const GpuCode&) const = default;
};

/// What the fat binary holds that nvcc's code hands to __cudaRegisterFatBinary in its wrapper. Empty where
/// the layout is not the one that LibTorch 2.11 has: NVIDIA documents the wrapper (fatbinary_section.h of the
/// CUDA Toolkit) and not what is in it, which was read off LibTorch's libraries.
std::vector<GpuCode> codes_in(const void* wrapper);

/// The one that a card of that capability runs: the newest machine code of its major version and not above
/// its minor one, else the newest PTX not above it (CUDA C++ Programming Guide, "Binary Compatibility" and
/// "PTX Compatibility"). nullopt: none.
std::optional<GpuCode> best_code(const std::vector<GpuCode>& codes, int capability);

}  // namespace offprof

#pragma once

#include <optional>
#include <vector>

namespace offprof {

/// One form of the kernels in a fat binary. Compute capabilities are written as 10 * major + minor.
struct GpuCode {
  int capability = 0;            ///< 86: `sm_86`, or `compute_86` for PTX
  bool is_ptx = false;           ///< the driver compiles it for the card in use
  bool is_for_one_card = false;  ///< `sm_90a`: runs on no other capability

  bool operator==(const GpuCode&) const = default;
};

/// Returns the codes in the fat binary whose wrapper nvcc's code passes to __cudaRegisterFatBinary. Empty if
/// the layout is not that of LibTorch 2.11. NVIDIA documents the wrapper (fatbinary_section.h of the CUDA
/// Toolkit), but not its contents; those were determined from LibTorch's libraries.
std::vector<GpuCode> codes_in(const void* wrapper);

/// Returns the code that a card of that capability runs: the newest machine code of its major version up to
/// its minor version, else the newest PTX up to its capability (CUDA C++ Programming Guide, "Binary
/// Compatibility" and "PTX Compatibility"). nullopt: there is none.
std::optional<GpuCode> best_code(const std::vector<GpuCode>& codes, int capability);

}  // namespace offprof

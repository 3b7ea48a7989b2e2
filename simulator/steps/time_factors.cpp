#include "simulator/steps/time_factors.h"

#include <algorithm>
#include <iterator>

namespace offprof {
namespace {

struct FamilyRange {
  std::string_view family;
  TimeFactors factors;
};

/// Ranges of products, row operators and elementwise operators: at least nine of ten rows of
/// tests/published/liger_a100.csv lie in them, with the constants fitted to the other operators of that table
/// (tests/published/leave_one_out.py, which reads the numbers from this file; docs/results/validation.md has
/// its output). So do nine of ten kernels of each range, and of the attention and the others below, that were
/// measured on an H100 (traces/recorded/h100/kernels.csv; `scripts/published.sh --measured`).
///
/// Collectives: the wider of the ranges within a node and between nodes of the built-in clusters with NVLink
/// (engine/devices/virtual_gpu/collectives/clusters).
///
/// No published row has the others:
/// - attention: the rates of flash attention were read off FlashAttention-2's figures for long sequences on
/// two
///   cards; those of other kernels are fitted to the H100's. Assumed.
/// - other (convolutions, gathers, scatters, sorts, kernels that are not known): bytes or operations are
///   counted from the operands. A model of that kind was off by 53 % on average on kernels that nobody had
///   looked at, and took them to be 1.4 times as fast as they are (geometric mean of 92 published rows of
///   Liger-Kernel: RoPE, embedding, squared ReLU, KL divergence).
constexpr FamilyRange kKernelFactors[] = {{"products", {0.85, 1.20}},    {"row_operators", {0.70, 1.30}},
                                          {"elementwise", {0.80, 1.60}}, {"attention", {0.70, 1.40}},
                                          {"collectives", {0.70, 1.60}}, {"other", {0.60, 2.50}}};

/// 5 us a launch is assumed. Liger-Kernel's rows that do not depend on the size of their tensors have 10 us a
/// kernel on the host of an H100 (2026), and 14 to 19 us in forward and backward on that of an A100 (2024); a
/// launch alone takes 4 to 6 us.
constexpr TimeFactors kHostFactors = {0.8, 3.8};

/// The constants are those of one host (HostTimes), on which steps of six small models took 0.88 to 1.20 of
/// the modelled time (traces/recorded/h100/models.csv). The published operators above take 0.5 to 1 of it on
/// other hosts.
constexpr TimeFactors kPythonHostFactors = {0.5, 1.3};

/// nvbandwidth reaches 24.8 to 26.8 GB/s over PCI Express 4.0 and 55.6 to 57.3 GB/s over 5.0, in one
/// direction at a time, of 25 and 50 or 55 in the profiles. With copies in the other direction at the same
/// time, a direction reaches 51 over 5.0 and 11 to 24 over 4.0 (NVIDIA/nvbandwidth README and issues 15 and
/// 53; tinygrad/open-gpu-kernel-modules#29).
constexpr TimeFactors kCopyFactors = {0.9, 1.35};

}  // namespace

TimeFactors kernel_factors(std::string_view family) {
  const auto* const found = std::find_if(std::begin(kKernelFactors), std::end(kKernelFactors),
                                         [&](const FamilyRange& range) { return range.family == family; });
  return found == std::end(kKernelFactors) ? std::prev(std::end(kKernelFactors))->factors : found->factors;
}

TimeFactors host_factors() {
  return kHostFactors;
}

TimeFactors python_host_factors() {
  return kPythonHostFactors;
}

TimeFactors copy_factors() {
  return kCopyFactors;
}

}  // namespace offprof

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/devices/virtual_gpu/model/kernel_times.h"
#include "engine/devices/virtual_gpu/model/op_work.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "traces/base/units.h"

namespace offprof {

/// A kernel launch, or a call of a library that launches its own kernels.
struct KernelLaunch {
  std::string_view name{};  ///< demangled; the function of a library call: `cublasGemmEx`
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  /// Device memory that the kernel's arguments point to; nullopt: its parameters are not known.
  std::optional<Bytes> argument_bytes{};
};

/// Source of a kernel's time.
enum class TimeSource { kRecordedOp, kRecordedKernel, kEstimate };

struct KernelTime {
  Nanoseconds duration = 0;
  TimeSource source = TimeSource::kEstimate;

  bool operator==(const KernelTime&) const = default;
};

/// Model of kernel durations.
///
/// A kernel whose parameters are known, as those of Triton, takes 2 of its own, or the roofline of
/// KernelLaunch::argument_bytes, moved once; its operations are not known. Any other kernel takes the first
/// of these that is available:
///
/// 1. The recorded time of the same operator with the same operands. It is charged to the operator's first
///    kernel, and the others take no time, since a library may launch other kernels than were recorded, and
///    grids do not determine all shapes.
/// 2. The recorded time of the same kernel with the same launch sizes.
/// 3. The roofline (Williams, Waterman, Patterson 2009). The operator's work is charged to its first kernel.
///    It takes the longer of its operations over the device's rate and its bytes over the memory's rate, each
///    at the share of the peak that large kernels reach. No kernel takes less than DeviceProfile::kernel_ns.
class KernelCost {
 public:
  /// `recorded` may be empty.
  KernelCost(DeviceProfile profile, KernelTimes recorded);

  /// Returns the time of the launch. `op` is the innermost operator that it belongs to, or nullptr outside
  /// any operator; `allocated` is as in work_of; `first` is true if the operator has launched no kernel
  /// before.
  KernelTime time_of(const KernelLaunch& launch, const OpCall* op, Bytes allocated, bool first) const;

 private:
  DeviceProfile profile_;
  KernelTimes recorded_;
};

}  // namespace offprof

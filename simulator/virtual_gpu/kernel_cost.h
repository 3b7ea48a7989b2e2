#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simulator/virtual_gpu/kernel_times.h"
#include "simulator/virtual_gpu/op_work.h"
#include "simulator/virtual_gpu/profile.h"
#include "traces/units.h"

namespace offprof {

/// A kernel, or a call of a library that launches kernels of its own.
struct KernelLaunch {
  std::string_view name{};  ///< demangled; of a library call, its function: `cublasGemmEx`
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
};

/// Where a kernel's time comes from.
enum class TimeSource { kRecordedOp, kRecordedKernel, kEstimate };

struct KernelTime {
  Nanoseconds duration = 0;
  TimeSource source = TimeSource::kEstimate;

  bool operator==(const KernelTime&) const = default;
};

/// How long kernels take: the first of these that can be told.
///
/// 1. The recorded time of the same operator with the same operands, charged to its first kernel, the others
/// then
///    taking nothing: a library may launch other kernels than were recorded, and grids do not tell all
///    shapes.
/// 2. The recorded time of the same kernel at the same launch sizes.
/// 3. The roofline (Williams, Waterman, Patterson 2009): the operator's work, charged to its first kernel,
/// takes the
///    longer of its operations over the device's rate and its bytes over the memory's, each at the share of
///    the peak that large kernels reach; no kernel takes less than DeviceProfile::kernel_ns.
class KernelCost {
 public:
  /// `recorded` may be empty.
  KernelCost(DeviceProfile profile, KernelTimes recorded);

  /// `op`: the innermost operator that the launch belongs to, nullptr outside any; `allocated` as in work_of;
  /// `first`: no kernel of the operator was launched before.
  KernelTime time_of(const KernelLaunch& launch, const OpCall* op, Bytes allocated, bool first) const;

 private:
  DeviceProfile profile_;
  KernelTimes recorded_;
};

}  // namespace offprof

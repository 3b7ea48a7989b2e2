#pragma once

#include "engine/devices/virtual_gpu/model/kernel_times.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "engine/devices/virtual_gpu/work/kernel_launch.h"
#include "engine/devices/virtual_gpu/work/kernel_work.h"
#include "engine/devices/virtual_gpu/work/op_work.h"
#include "traces/base/units.h"

namespace offprof {

/// Source of a kernel's time.
enum class TimeSource { kRecordedOp, kRecordedKernel, kEstimate };

struct KernelTime {
  Nanoseconds duration = 0;
  TimeSource source = TimeSource::kEstimate;
  double flops = 0;  ///< operations of the kernel: see OpWork

  bool operator==(const KernelTime&) const = default;
};

/// Returns the modelled time of a kernel's work:
///
///     kernel_ns + max(operations / (share * peak of the dtype), bytes / bandwidth, elements / rate, loads *
///     latency) + closing loads * latency
///
/// - The share of the peak is compute_efficiency, and for matrix products also their tile_share. Convolutions
///   have convolution_seconds, and attention has attention_share. Kernels beside theirs are added.
/// - The bandwidth is memory_efficiency of the peak, or less if the launch has few threads: each has one load
///   of 16 bytes on the way (Little's law).
/// - Bytes that are read again count as far as they do not fit the L2 cache.
/// - Kernels that load element by element take elements_per_cycle on each multiprocessor.
Nanoseconds modelled_time(const DeviceProfile& profile, const KernelLaunch& launch, const KernelWork& kernel);

/// Model of kernel durations.
///
/// A kernel whose parameters are known, as those of Triton, takes 2 of its own, or the time to move
/// KernelLaunch::argument_bytes once; its operations are not known. Any other kernel takes the first of these
/// that is available:
///
/// 1. The recorded time of the same operator with the same operands. It is charged to the operator's first
///    kernel, and the others take no time, since a library may launch other kernels than were recorded, and
///    grids do not determine all shapes.
/// 2. The recorded time of the same kernel with the same launch sizes.
/// 3. The modelled_time of its work.
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

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/state/simulated_gpu.h"
#include "traces/base/whole_number.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

// Copies from pageable memory up to this size are staged: the call returns before the copy (CUDA Runtime API,
// "API synchronization behavior").
constexpr Bytes kStagedBytes = 64 * kKiB;

// Values that a model reads back for a decision are at most this large and read as zeros. Larger copies leave
// host memory untouched, so that unused pinned memory takes no physical memory.
constexpr Bytes kZeroedBytes = 64 * kKiB;
// In functional mode the memory holds other data, and only a single number reads as zero.
constexpr Bytes kNumberBytes = 8;

}  // namespace

GpuStatus SimulatedGpu::launch(StreamId stream, const KernelLaunch& launch) {
  const Lock lock(mutex_);
  if (!time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
  run_kernel(stream, launch, launch.name);
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::launch(StreamId stream, const void* host_stub, KernelLaunch launch) {
  const Lock lock(mutex_);
  if (!time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
  if (!kernels_.code(host_stub, capability())) return GpuStatus::kNoCode;
  launch.name = kernels_.name(host_stub);
  const char* mangled = kernels_.mangled_name(host_stub);
  run_kernel(stream, launch, mangled == nullptr ? launch.name : mangled);
  return GpuStatus::kOk;
}

void SimulatedGpu::run_kernel(StreamId stream, const KernelLaunch& launch, std::string_view symbol) {
  OpStack::Frame outside;
  OpStack::Frame& frame = ops().empty() ? outside : ops().innermost();
  time_.advance_host(options_.profile.launch_ns);
  const KernelTime time = cost_->time_of(launch, frame.op, frame.allocated, !frame.has_launched);
  const TimeSpan span = time_.run(stream, time.duration);
  if (GpuObserver* told = observer()) told->on_kernel(stream, launch, symbol, span);
  count_launch_time(time.source);
  frame.has_launched = true;
  if (functional_mode_) kernel_streams_.insert(stream);
  kernels_.count_launch(launch.name);
  if (order_) order_->kernel(stream, launch.name);
}

void SimulatedGpu::count_launch_time(TimeSource source) {
  switch (source) {
    case TimeSource::kRecordedOp:
      ++launch_times_.by_op;
      break;
    case TimeSource::kRecordedKernel:
      ++launch_times_.by_kernel;
      break;
    case TimeSource::kEstimate:
      ++launch_times_.estimated;
      break;
  }
}

// Returns the time to read or write device memory by a memset or a copy inside the device.
Nanoseconds SimulatedGpu::memory_duration(Bytes bytes) const {
  const DeviceProfile& profile = options_.profile;
  const double rate = profile.memory_bytes_per_second * profile.memory_efficiency;
  return std::max(profile.kernel_ns,
                  std::min(to_whole(std::floor(1e9 * static_cast<double>(bytes) / rate)), kLongestMeasured));
}

GpuStatus SimulatedGpu::copy(StreamId stream, const CopyRows& rows, HostWaits host_waits) {
  const Lock lock(mutex_);
  if (!time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
  if (rows.bytes < 0 || rows.rows < 0) return GpuStatus::kInvalidValue;
  if (rows.bytes == 0 || rows.rows == 0) return GpuStatus::kOk;
  const MemoryPlace to = place_of(rows.to), from = place_of(rows.from);
  time_.advance_host(options_.profile.launch_ns);
  if (to != MemoryPlace::kDevice && from != MemoryPlace::kDevice) {
    copy_host(stream, rows);
    const TimeSpan now{time_.host_time(), time_.host_time()};
    if (GpuObserver* told = observer()) told->on_copy(stream, to, from, rows.bytes * rows.rows, now);
    return GpuStatus::kOk;
  }
  const bool is_staged = from == MemoryPlace::kPageable && rows.bytes * rows.rows <= kStagedBytes;
  const bool is_pageable = from == MemoryPlace::kPageable || to == MemoryPlace::kPageable;
  const TimeSpan span = time_copy(stream, to, from, rows.bytes * rows.rows);
  if (GpuObserver* told = observer()) told->on_copy(stream, to, from, rows.bytes * rows.rows, span);
  for (Bytes row = 0; row < rows.rows; ++row) {
    carry_out_row(stream, {static_cast<const char*>(rows.to) + row * rows.to_pitch, to},
                  {static_cast<const char*>(rows.from) + row * rows.from_pitch, from}, rows.bytes, is_staged);
  }
  if (host_waits == HostWaits::kUntilDone || (is_pageable && !is_staged)) wait_for_stream(stream);
  return GpuStatus::kOk;
}

// Copies between two places on the host. The host itself copies when the stream has reached the copy.
void SimulatedGpu::copy_host(StreamId stream, const CopyRows& rows) {
  wait_for_stream(stream);
  for (Bytes row = 0; row < rows.rows; ++row) {
    std::memmove(static_cast<char*>(rows.to) + row * rows.to_pitch,
                 static_cast<const char*>(rows.from) + row * rows.from_pitch, rows.bytes);
  }
}

TimeSpan SimulatedGpu::time_copy(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes) {
  if (to == MemoryPlace::kDevice && from == MemoryPlace::kDevice)
    return time_.run(stream, memory_duration(2 * bytes));
  const bool out = from == MemoryPlace::kDevice;
  return time_.copy(stream, out ? CopyDirection::kD2h : CopyDirection::kH2d, bytes);
}

/// Returns true for a number that a kernel should have computed. Kernels write nothing, so the memory may
/// hold anything from earlier use.
bool SimulatedGpu::reads_back_a_value(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes) const {
  return from.place == MemoryPlace::kDevice && to.place != MemoryPlace::kDevice && bytes <= kNumberBytes &&
         kernel_streams_.contains(stream);
}

void SimulatedGpu::carry_out_row(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes, bool is_staged) {
  if (order_) order_->copy(stream, to, from, bytes);
  auto* const target = static_cast<char*>(const_cast<void*>(to.address));
  const auto* const source = static_cast<const char*>(from.address);
  if (!functional_mode_) {
    if (to.place != MemoryPlace::kDevice && bytes <= kZeroedBytes) std::memset(target, 0, bytes);
  } else if (reads_back_a_value(stream, to, from, bytes)) {
    functional_mode_->call(stream,
                           [target, bytes] { std::memset(target, 0, static_cast<std::size_t>(bytes)); });
  } else if (is_staged) {
    functional_mode_->call(stream, [target, staged = std::vector<char>(source, source + bytes)] {
      std::memcpy(target, staged.data(), staged.size());
    });
  } else {
    functional_mode_->copy(stream, target, source, bytes);
  }
}

GpuStatus SimulatedGpu::set(StreamId stream, void* to, int value, Bytes bytes, HostWaits host_waits) {
  const Lock lock(mutex_);
  if (!time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
  if (bytes == 0) return GpuStatus::kOk;
  if (place_of(to) != MemoryPlace::kDevice) return GpuStatus::kInvalidValue;
  time_.advance_host(options_.profile.launch_ns);
  const TimeSpan span = time_.run(stream, memory_duration(bytes));
  if (GpuObserver* told = observer()) told->on_set(stream, value, bytes, span);
  if (order_) order_->set(stream, to, bytes);
  if (functional_mode_) functional_mode_->set(stream, to, value, bytes);
  if (host_waits == HostWaits::kUntilDone) wait_for_stream(stream);
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::call_host(StreamId stream, std::function<void()> function) {
  {
    const Lock lock(mutex_);
    if (!time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
    if (functional_mode_) {
      functional_mode_->call(stream, std::move(function));
      return GpuStatus::kOk;
    }
  }
  // The function does not wait, since nothing it could read is ever computed. It may take the lock.
  function();
  return GpuStatus::kOk;
}

}  // namespace offprof

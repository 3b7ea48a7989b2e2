#include "engine/devices/virtual_gpu/state/gpu_copies.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "traces/base/error.h"
#include "traces/base/whole_number.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

// Copies from pageable memory up to this size are staged: the call returns before the copy (CUDA Runtime API,
// "API synchronization behavior").
constexpr Bytes kStagedBytes = 64 * kKiB;

// In functional mode the memory holds other data, and only a single number reads as zero.
constexpr Bytes kNumberBytes = 8;

}  // namespace

GpuStatus GpuCopies::copy(StreamId stream, const CopyRows& rows, HostWaits host_waits) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  if (rows.bytes < 0 || rows.rows < 0) return GpuStatus::kInvalidValue;
  if (rows.bytes == 0 || rows.rows == 0) return GpuStatus::kOk;
  const Bytes bytes = rows.bytes * rows.rows;
  const MemoryPlace to = memory_.place_of(rows.to), from = memory_.place_of(rows.from);
  state_.time.advance_host(state_.options.profile.launch_ns);
  if (to != MemoryPlace::kDevice && from != MemoryPlace::kDevice) {
    copy_on_host(stream, rows);
    const TimeSpan now{state_.time.host_time(), state_.time.host_time()};
    report(stream, to, from, bytes, now);
    return GpuStatus::kOk;
  }
  const bool is_staged = from == MemoryPlace::kPageable && bytes <= kStagedBytes;
  const bool is_pageable = from == MemoryPlace::kPageable || to == MemoryPlace::kPageable;
  const TimeSpan span = time_copy(stream, to, from, bytes);
  report(stream, to, from, bytes, span);
  try {
    for (Bytes row = 0; row < rows.rows; ++row) {
      copy_row(stream, {static_cast<const char*>(rows.to) + row * rows.to_pitch, to},
               {static_cast<const char*>(rows.from) + row * rows.from_pitch, from}, rows.bytes, is_staged);
    }
  } catch (const Error& error) {  // of another rank, whose value is read
    std::fprintf(stderr, "offprof: %s\n", error.what());
    return GpuStatus::kPeerProblem;
  }
  if (host_waits == HostWaits::kUntilDone || (is_pageable && !is_staged)) state_.wait_for_stream(stream);
  return GpuStatus::kOk;
}

void GpuCopies::report(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes, TimeSpan span) const {
  if (GpuObserver* observer = state_.observer) observer->on_copy(stream, to, from, bytes, span);
}

// Copies between two places on the host. The host itself copies when the stream has reached the copy.
void GpuCopies::copy_on_host(StreamId stream, const CopyRows& rows) {
  state_.wait_for_stream(stream);
  for (Bytes row = 0; row < rows.rows; ++row) {
    std::memmove(static_cast<char*>(rows.to) + row * rows.to_pitch,
                 static_cast<const char*>(rows.from) + row * rows.from_pitch, rows.bytes);
  }
}

// Returns the time to read or write device memory by a memset or a copy inside the device.
Nanoseconds GpuCopies::memory_duration(Bytes bytes) const {
  const DeviceProfile& profile = state_.options.profile;
  const double rate = profile.memory_bytes_per_second * profile.memory_efficiency;
  return std::max(profile.kernel_ns,
                  std::min(to_whole(std::floor(1e9 * static_cast<double>(bytes) / rate)), kLongestMeasured));
}

TimeSpan GpuCopies::time_copy(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes) {
  if (to == MemoryPlace::kDevice && from == MemoryPlace::kDevice)
    return state_.time.run(stream, memory_duration(2 * bytes));
  const bool out = from == MemoryPlace::kDevice;
  const auto direction = out ? CopyDirection::kD2h : CopyDirection::kH2d;
  const bool is_pageable = (out ? to : from) == MemoryPlace::kPageable;
  return state_.time.copy(stream, direction,
                          is_pageable ? state_.time.pinned_bytes_like(direction, bytes) : bytes);
}

/// Returns true for a number that a kernel should have computed. Kernels write nothing, so the memory may
/// hold anything from earlier use.
bool GpuCopies::reads_back_a_value(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes) const {
  return from.place == MemoryPlace::kDevice && to.place != MemoryPlace::kDevice && bytes <= kNumberBytes &&
         streams_.has_kernels(stream);
}

/// Returns the number of that size which the host reads in the place of an unknown one; an empty vector if
/// there is none. Numbers are little-endian.
std::vector<char> GpuCopies::answer_of(Bytes bytes) const {
  if (!state_.answer || bytes > kNumberBytes) return {};
  std::vector<char> value(static_cast<std::size_t>(bytes));
  std::memcpy(value.data(), &*state_.answer, std::min(value.size(), sizeof *state_.answer));
  return value;
}

// Copies of unknown values to the host bring zeros. Large ones leave host memory untouched, so that unused
// pinned memory takes no physical memory.
void GpuCopies::carry_value(CopyEnd to, CopyEnd from, Bytes bytes) {
  if (to.place == MemoryPlace::kDevice) {
    if (from.place == MemoryPlace::kDevice) state_.values.copy(to.address, from.address, bytes);
    if (from.place != MemoryPlace::kDevice) state_.values.write(to.address, from.address, bytes);
    return;
  }
  // The value that is read may depend on those that did not come.
  if (!state_.read_problem.empty()) throw input_error(state_.read_problem);
  std::vector<char> value = state_.values.read(from.address, bytes);
  if (value.empty()) value = answer_of(bytes);
  if (value.empty() && !state_.carries_objects()) ++state_.unknown_reads;
  if (bytes > SmallValues::kLargest) return;
  value.resize(static_cast<std::size_t>(bytes));
  std::memcpy(const_cast<void*>(to.address), value.data(), value.size());
}

void GpuCopies::copy_row(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes, bool is_staged) {
  if (state_.races) state_.races->copy(stream, to, from, bytes);
  if (state_.functional_mode && to.place != MemoryPlace::kDevice) ++state_.unknown_reads;
  auto* const target = static_cast<char*>(const_cast<void*>(to.address));
  const auto* const source = static_cast<const char*>(from.address);
  if (!state_.functional_mode) {
    carry_value(to, from, bytes);
  } else if (reads_back_a_value(stream, to, from, bytes)) {
    state_.functional_mode->call(
        stream, [target, bytes] { std::memset(target, 0, static_cast<std::size_t>(bytes)); });
  } else if (is_staged) {
    state_.functional_mode->call(stream, [target, staged = std::vector<char>(source, source + bytes)] {
      std::memcpy(target, staged.data(), staged.size());
    });
  } else {
    state_.functional_mode->copy(stream, target, source, bytes);
  }
}

GpuStatus GpuCopies::set(StreamId stream, void* to, int value, Bytes bytes, HostWaits host_waits) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  if (bytes == 0) return GpuStatus::kOk;
  if (memory_.place_of(to) != MemoryPlace::kDevice) return GpuStatus::kInvalidValue;
  state_.time.advance_host(state_.options.profile.launch_ns);
  const TimeSpan span = state_.time.run(stream, memory_duration(bytes));
  if (GpuObserver* observer = state_.observer) observer->on_set(stream, value, bytes, span);
  if (state_.races) state_.races->set(stream, to, bytes);
  if (state_.functional_mode) state_.functional_mode->set(stream, to, value, bytes);
  if (!state_.functional_mode) state_.values.fill(to, value, bytes);
  if (host_waits == HostWaits::kUntilDone) state_.wait_for_stream(stream);
  return GpuStatus::kOk;
}

}  // namespace offprof

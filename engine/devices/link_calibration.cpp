#include "engine/devices/link_calibration.h"

#include <algorithm>
#include <cstring>

#include "engine/devices/host_memory.h"

namespace offprof {
namespace {

constexpr Bytes kSizes[] = {64, 64 * kKiB, 1 * kMiB, 8 * kMiB};
/// A GPU's link reaches its full speed only at this size.
constexpr Bytes kLargestOfGpu = 64 * kMiB;
constexpr int kCopies = 15;
/// Copies cycle through this much memory, more than a CPU's caches hold: in a step, too, reloaded data has
/// long left the caches.
constexpr Bytes kMemory = 64 * kMiB;
/// Typical compute time between two copies of a step.
constexpr Nanoseconds kBetweenCopies = 300'000;

/// Device and host memory to copy between.
class CopyBuffers {
 public:
  explicit CopyBuffers(Device& device)
      : device_(device), storage_(device.allocate(kMemory)), host_(device, kMemory), idle_at_end_(device) {
    std::memset(host_.get(), 1, kMemory);
    write_device_memory(kMemory);
  }

  /// Copies and waits.
  void copy(CopyDirection direction, Bytes bytes) { wait(direction, request(direction, bytes)); }

  /// Requests a copy. Writes the device memory before, because a step copies out activations that it has just
  /// computed, and reloads into the memory of others.
  Device::Event request(CopyDirection direction, Bytes bytes) {
    if (offset_ + bytes > kMemory) offset_ = 0;
    const bool out = direction == CopyDirection::kD2h;
    write_device_memory(bytes);
    std::byte *on_device = device_memory(), *on_host = host_.get() + offset_;
    offset_ += bytes;
    return device_.copy(queue_of(direction),
                        {out ? on_host : on_device, out ? on_device : on_host, bytes, direction, 0});
  }

  void wait(CopyDirection direction, Device::Event event) { device_.wait(queue_of(direction), event); }

 private:
  static CopyQueue queue_of(CopyDirection direction) {
    return direction == CopyDirection::kD2h ? CopyQueue::kD2h : CopyQueue::kH2d;
  }
  std::byte* device_memory() { return static_cast<std::byte*>(storage_.mutable_data()) + offset_; }
  void write_device_memory(Bytes bytes) {
    if (device_.torch_device().is_cpu()) std::memset(device_memory(), 1, static_cast<std::size_t>(bytes));
  }

  Device& device_;
  Bytes offset_ = 0;
  c10::Storage storage_;
  HostMemory host_;
  IdleAtEnd idle_at_end_;
};

CopyTiming time_copies(Device& device, CopyBuffers& buffers, CopyDirection direction, Bytes bytes) {
  for (int i = 0; i < kCopies; ++i) buffers.copy(direction, bytes);
  std::vector<Nanoseconds> durations;
  for (const CopyRecord& record : device.take_copy_records())
    durations.push_back(record.end_ns - record.begin_ns);
  return {bytes, summarize_measured(std::move(durations))};
}

std::vector<CopyTiming> time_copies(Device& device, CopyBuffers& buffers, CopyDirection direction) {
  std::vector<CopyTiming> timings;
  for (const Bytes bytes : kSizes) timings.push_back(time_copies(device, buffers, direction, bytes));
  if (!device.torch_device().is_cpu())
    timings.push_back(time_copies(device, buffers, direction, kLargestOfGpu));
  return timings;
}

/// Measures the time from the end of a request to the start of the copy: the request's own time is part of
/// Calibration::command. 0 if the copy starts before the request returns. For the host device only, whose
/// marks are times.
MeasuredQuartiles time_starts(Device& device, CopyBuffers& buffers) {
  std::vector<Nanoseconds> asked, starts;
  for (int i = 0; i < kCopies; ++i) {
    const Nanoseconds until = device.mark() + kBetweenCopies;
    while (device.mark() < until) {
    }
    const Device::Event copy = buffers.request(CopyDirection::kH2d, kSizes[0]);
    asked.push_back(device.mark());
    buffers.wait(CopyDirection::kH2d, copy);
  }
  const std::vector<CopyRecord> records = device.take_copy_records();
  check_marks(device);
  for (std::size_t i = 0; i < records.size(); ++i)
    starts.push_back(std::max<Nanoseconds>(records[i].begin_ns - device.time_of(asked[i]), 0));
  return summarize_measured(std::move(starts));
}

}  // namespace

CopyCalibration calibrate_copies(Device& device) {
  device.synchronize();
  device.take_copy_records();
  device.forget_marks();
  CopyCalibration calibration;
  const auto look_at_cores = [&] {
    if (const auto apart = device.core_to_core_ns()) calibration.core_to_core_ns.push_back(*apart);
  };
  look_at_cores();
  {
    CopyBuffers buffers(device);  // for all sizes, since new memory costs more time than the copies
    calibration.d2h = time_copies(device, buffers, CopyDirection::kD2h);
    calibration.h2d = time_copies(device, buffers, CopyDirection::kH2d);
    if (device.torch_device().is_cpu()) calibration.start = time_starts(device, buffers);
  }
  look_at_cores();
  device.forget_marks();
  device.take_exposed_ns();
  device.release_cache();
  return calibration;
}

}  // namespace offprof

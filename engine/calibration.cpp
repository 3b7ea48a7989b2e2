#include "engine/calibration.h"

#include <chrono>
#include <cstring>
#include <thread>

namespace offprof {
namespace {

constexpr Bytes kSizes[] = {64, 64 * kKiB, 1 * kMiB, 8 * kMiB};
/// A GPU's link is not at its full speed before.
constexpr Bytes kLargestOfGpu = 64 * kMiB;
constexpr int kCopies = 15;
/// Long enough for a copy stream that has nothing to do to fall asleep, as between the copies of a step.
constexpr std::chrono::microseconds kIdle{300};

/// Device and host memory of the same size, written to.
class CopyBuffers {
 public:
  CopyBuffers(Device& device, Bytes bytes)
      : device_(device), bytes_(bytes), storage_(device.allocate(bytes)), host_(device.allocate_host(bytes)) {
    std::memset(host_, 1, static_cast<std::size_t>(bytes));
    if (device.torch_device().is_cpu())
      std::memset(storage_.mutable_data(), 1, static_cast<std::size_t>(bytes));
  }
  ~CopyBuffers() { device_.free_host(host_, bytes_); }
  CopyBuffers(const CopyBuffers&) = delete;
  CopyBuffers& operator=(const CopyBuffers&) = delete;

  void copy(CopyDirection direction) {
    const bool out = direction == CopyDirection::kD2h;
    void* on_device = storage_.mutable_data();
    const CopyQueue queue = out ? CopyQueue::kD2h : CopyQueue::kH2d;
    const CopyRequest request{out ? host_ : on_device, out ? on_device : host_, bytes_, direction, 0};
    device_.wait(queue, device_.copy(queue, request));
  }

 private:
  Device& device_;
  Bytes bytes_;
  c10::Storage storage_;
  std::byte* host_;
};

CopyTiming time_copies(Device& device, CopyDirection direction, Bytes bytes) {
  CopyBuffers buffers(device, bytes);
  for (int i = 0; i < kCopies; ++i) buffers.copy(direction);
  std::vector<Nanoseconds> durations;
  for (const CopyRecord& record : device.take_copy_records())
    durations.push_back(record.end_ns - record.begin_ns);
  return {bytes, summarize_measured(std::move(durations))};
}

std::vector<CopyTiming> time_copies(Device& device, CopyDirection direction) {
  std::vector<CopyTiming> timings;
  for (const Bytes bytes : kSizes) timings.push_back(time_copies(device, direction, bytes));
  if (!device.torch_device().is_cpu()) timings.push_back(time_copies(device, direction, kLargestOfGpu));
  return timings;
}

/// How long copy streams take to begin after a rest.
Measured time_starts(Device& device) {
  CopyBuffers buffers(device, kSizes[0]);
  std::vector<Nanoseconds> asked, starts;
  for (int i = 0; i < kCopies; ++i) {
    std::this_thread::sleep_for(kIdle);
    asked.push_back(device.mark());
    buffers.copy(CopyDirection::kD2h);
  }
  const std::vector<CopyRecord> records = device.take_copy_records();
  for (std::size_t i = 0; i < records.size(); ++i)
    starts.push_back(records[i].begin_ns - device.time_of(asked[i]));
  return summarize_measured(std::move(starts));
}

}  // namespace

CopyCalibration calibrate_copies(Device& device) {
  device.synchronize();
  device.take_copy_records();
  device.forget_marks();
  CopyCalibration calibration{time_copies(device, CopyDirection::kD2h),
                              time_copies(device, CopyDirection::kH2d)};
  if (device.torch_device().is_cpu()) calibration.start = time_starts(device);
  device.forget_marks();
  device.take_exposed_ns();
  device.release_cache();
  return calibration;
}

}  // namespace offprof

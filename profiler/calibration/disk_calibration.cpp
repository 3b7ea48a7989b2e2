#include "profiler/calibration/disk_calibration.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "engine/copies/aligned_buffer.h"
#include "traces/base/steady_clock.h"

namespace offprof {
namespace {

constexpr int kTimes = 9;
/// The largest size is that of large tensors; the smallest is nearly all latency.
constexpr std::array<Bytes, 4> kSizes = {4 * kKiB, 256 * kKiB, 4 * kMiB, 32 * kMiB};

/// Fills the buffer with normally distributed numbers, the same each time. This writes real pages, which no
/// disk treats as a hole, and compresses like the outputs of a layer. The numbers repeat at a distance beyond
/// the window of any fast codec.
void fill_like_activations(std::byte* buffer, Bytes bytes) {
  constexpr std::size_t kNumbers = 1 << 18;
  std::vector<float> numbers(kNumbers);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::ranges::generate(numbers, [&] { return normal(random); });
  constexpr auto kPeriod = static_cast<Bytes>(kNumbers * sizeof(float));
  for (Bytes begin = 0; begin < bytes; begin += kPeriod)
    std::memcpy(buffer + begin, numbers.data(), static_cast<std::size_t>(std::min(kPeriod, bytes - begin)));
}

/// Space on the disk, released by the destructor.
class DiskSpace {
 public:
  /// Reserves the space. If the disk is full, there is no extent.
  DiskSpace(DeviceDisk& disk, Bytes bytes) : disk_(disk), extent_(disk.reserve(bytes, nullptr)) {}
  ~DiskSpace() {
    if (extent_) disk_.release(*extent_);
  }
  DiskSpace(const DiskSpace&) = delete;
  DiskSpace& operator=(const DiskSpace&) = delete;
  const std::optional<Extent>& extent() const { return extent_; }

 private:
  DeviceDisk& disk_;
  std::optional<Extent> extent_;
};

/// Returns the time from the request to the end of a transfer.
template <typename Begin>
Nanoseconds time_transfer(DeviceDisk& disk, Begin begin) {
  const Nanoseconds start = steady_now();
  disk.wait(begin());
  return steady_now() - start;
}

}  // namespace

void calibrate_disk(Device& device, Calibration& calibration) {
  DeviceDisk* const disk = device.disk();
  const AlignedBuffer memory = make_aligned_buffer(kSizes.back());
  if (disk == nullptr || memory == nullptr) return;
  std::byte* const buffer = memory.get();
  fill_like_activations(buffer, kSizes.back());
  for (const Bytes bytes : kSizes) {
    const DiskSpace space(*disk, bytes);
    const auto& extent = space.extent();
    if (!extent) break;
    std::vector<Nanoseconds> writes, reads;
    for (int i = 0; i < kTimes; ++i) {
      writes.push_back(
          time_transfer(*disk, [&] { return disk->write(*extent, buffer, bytes, CopyQueue::kD2h, 0); }));
      reads.push_back(time_transfer(*disk, [&] { return disk->read(*extent, buffer, bytes, 0); }));
    }
    calibration.disk_write.push_back({bytes, summarize_measured(std::move(writes))});
    calibration.disk_read.push_back({bytes, summarize_measured(std::move(reads))});
  }
  disk->take_records();
  disk->take_stored();
  device.take_exposed_ns();
}

}  // namespace offprof

#include "profiler/disk_calibration.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "engine/host/aligned_buffer.h"
#include "engine/host/copy_stream.h"

namespace offprof {
namespace {

constexpr int kTimes = 9;
/// The last is as much as large tensors have; the first is nearly all latency.
constexpr std::array<Bytes, 4> kSizes = {4 * kKiB, 256 * kKiB, 4 * kMiB, 32 * kMiB};

/// From asking until it is there.
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
  std::fill_n(buffer, kSizes.back(), std::byte{0x5a});  // real pages, and what no disk takes for a hole
  for (const Bytes bytes : kSizes) {
    const auto extent = disk->reserve(bytes, nullptr);
    if (!extent) break;
    std::vector<Nanoseconds> writes, reads;
    for (int i = 0; i < kTimes; ++i) {
      writes.push_back(
          time_transfer(*disk, [&] { return disk->write(*extent, buffer, bytes, CopyQueue::kD2h, 0); }));
      reads.push_back(time_transfer(*disk, [&] { return disk->read(*extent, buffer, bytes, 0); }));
    }
    disk->release(*extent);
    calibration.disk_write.push_back({bytes, summarize_measured(std::move(writes))});
    calibration.disk_read.push_back({bytes, summarize_measured(std::move(reads))});
  }
  disk->take_records();
  device.take_exposed_ns();
}

}  // namespace offprof

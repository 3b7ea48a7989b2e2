#include "profiler/calibration/disturbances.h"

#include <algorithm>
#include <cstring>

#include "traces/base/steady_clock.h"

namespace offprof {
namespace {

/// Share of the time in which either copy stream is busy. A smaller share makes more of the result noise, but
/// the copies should end before the step does.
constexpr double kCopyingShare = 0.5;
constexpr Bytes kLeastCopy = 4 * kKiB, kMostCopy = 4 * kMiB;
/// Memory of each end of the copies.
constexpr Bytes kMemory = 64 * kMiB;

std::byte* place_in(const c10::Storage& storage, Bytes offset) {
  return static_cast<std::byte*>(storage.mutable_data()) + offset;
}

}  // namespace

Nanoseconds now_on(Device& device) {
  return device.torch_device().is_cpu() ? device.time_of(device.mark()) : steady_now();
}

void stand_still(Device& device, Nanoseconds duration) {
  for (const Nanoseconds end = now_on(device) + duration; now_on(device) < end;) {
  }
}

CopiesBeside::CopiesBeside(Device& device, Bytes bytes)
    : device_(device),
      bytes_(bytes),
      from_device_(device.allocate(kMemory)),
      to_device_(device.allocate(kMemory)),
      to_host_(device, kMemory),
      from_host_(device, kMemory),
      idle_at_end_(device) {
  std::memset(from_host_.get(), 1, kMemory);  // unwritten memory may be one page of zeros
}

void CopiesBeside::copy() {
  const Bytes offset = copies_ / 2 * bytes_ % (kMemory - bytes_);
  const bool out = copies_++ % 2 == 0;
  const Nanoseconds begin = now_on(device_);
  if (out)
    device_.copy(CopyQueue::kD2h,
                 {to_host_.get() + offset, place_in(from_device_, offset), bytes_, CopyDirection::kD2h, 0});
  else
    device_.copy(CopyQueue::kH2d,
                 {place_in(to_device_, offset), from_host_.get() + offset, bytes_, CopyDirection::kH2d, 0});
  asking_ns_ += now_on(device_) - begin;
}

Bytes bytes_beside(const Link& link, Nanoseconds duration, std::size_t copies) {
  const double slower = std::min(link.d2h.bytes_per_second, link.h2d.bytes_per_second);
  const double copies_each = static_cast<double>(copies) / 2;
  const double bytes =
      kCopyingShare * slower * static_cast<double>(duration) / 1e9 / std::max(copies_each, 1.0);
  return std::clamp(static_cast<Bytes>(bytes), kLeastCopy, kMostCopy);
}

std::optional<Nanoseconds> time_per_mib(std::span<const CopyRecord> copies, CopyDirection direction,
                                        Nanoseconds latency) {
  Nanoseconds time = 0;
  Bytes bytes = 0;
  for (const CopyRecord& copy : copies) {
    if (copy.direction != direction) continue;
    time += std::max<Nanoseconds>(copy.end_ns - copy.begin_ns - latency, 0);
    bytes += copy.bytes;
  }
  if (bytes == 0) return std::nullopt;
  return static_cast<Nanoseconds>(static_cast<double>(time) * kMiB / static_cast<double>(bytes));
}

MeasuredQuartiles summarize_losses(std::vector<Nanoseconds> losses) {
  for (Nanoseconds& loss : losses) loss = std::max<Nanoseconds>(loss, 0);
  return summarize_measured(std::move(losses));
}

bool did_cores_move(const MeasuredQuartiles& in_steps, const std::vector<Nanoseconds>& before) {
  return !are_as_far_apart(in_steps.low_ns, in_steps.high_ns) ||
         !std::ranges::all_of(before,
                              [&](Nanoseconds apart) { return are_as_far_apart(apart, in_steps.median_ns); });
}

}  // namespace offprof

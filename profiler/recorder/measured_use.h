#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/devices/device.h"
#include "traces/base/steady_clock.h"
#include "traces/model/calibration.h"
#include "traces/model/transform_cost.h"

namespace offprof {

/// Records allocations and frees. Frees of older allocations are ignored.
class MemoryNotes final : public AllocationListener {
 public:
  explicit MemoryNotes(DeviceAllocator& allocator) : allocator_(allocator) { allocator_.set_listener(this); }
  ~MemoryNotes() override { allocator_.set_listener(nullptr); }
  MemoryNotes(const MemoryNotes&) = delete;
  MemoryNotes& operator=(const MemoryNotes&) = delete;

  void on_alloc(AllocationId id, Bytes bytes, std::int32_t /*stream*/) override {
    if (bytes == 0) return;
    number_of_.emplace(id, static_cast<std::int32_t>(number_of_.size()));
    memory_.push_back({bytes, -1});
  }
  void on_free(AllocationId id, Bytes /*bytes*/, std::int32_t /*stream*/) override {
    if (const auto found = number_of_.find(id); found != number_of_.end())
      memory_.push_back({0, found->second});
  }

  std::vector<TransformMemory> take() { return std::move(memory_); }

 private:
  DeviceAllocator& allocator_;
  std::map<AllocationId, std::int32_t> number_of_;
  std::vector<TransformMemory> memory_;
};

/// Measures the device memory and time of `work`. The device must be idle and have no listener. Memory and
/// work are those of the last run; the time is the median of all runs but the first, which warms up. `forget`
/// frees the tensors that a run created.
template <typename Work, typename Forget>
TransformUse use_of(Device& device, const Work& work, const Forget& forget) {
  constexpr int kTimedRuns = 3;
  TransformUse use;
  bool tells_work = false;
  std::vector<Nanoseconds> times, host_times;
  for (int i = 0; i <= kTimedRuns; ++i) {
    device.synchronize();
    device.take_work();
    MemoryNotes notes(device);
    const Nanoseconds host_begin = steady_now();
    const Device::TimeMark begin = device.mark();
    work();
    const Device::TimeMark end = device.mark();
    const Nanoseconds host_time = steady_now() - host_begin;
    use.memory = notes.take();
    const auto given = device.take_work();
    tells_work = given.has_value();
    if (tells_work) use.work = *given;
    check_marks(device);
    device.synchronize();
    if (i > 0) times.push_back(device.time_of(end) - device.time_of(begin));
    if (i > 0) host_times.push_back(host_time);
    forget();
  }
  use.compute_ns = median_of(std::move(times));
  const Nanoseconds host_ns = median_of(std::move(host_times));
  if (!device.torch_device().is_cpu() && !tells_work)
    use.work = {host_ns, use.compute_ns, std::max(host_ns, use.compute_ns), offprof::Work::kNoWait,
                use.compute_ns};
  return use;
}

}  // namespace offprof

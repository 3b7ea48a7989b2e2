#include "simulator/steps/cache_replay.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "simulator/allocator/caching_allocator.h"
#include "simulator/replay/replay.h"

namespace offprof {
namespace {

using Handle = CachingAllocator::Handle;
constexpr Handle kNoBlock = -1;

/// Passes the allocations of a replay on to the allocator, step after step.
class CacheListener final : public ReplayListener {
 public:
  CacheListener(const Step& step, CachingAllocator& allocator)
      : step_(step), allocator_(allocator), is_resident_(step.storage_bytes().size(), 0) {
    for (const std::int32_t storage : step.residents()) is_resident_[storage] = 1;
    for (const auto& [storage, block] : allocator.blocks_by_storage()) residents_[storage] = block;
  }

  void begin_step() {
    blocks_.assign(step_.storage_bytes().size(), kNoBlock);
    for (const auto& [storage, block] : residents_) blocks_[storage] = block;
    allocator_.reset_peaks();
    reserved_.clear();
    event_ = 0;
    note_reserved();
  }

  void on_carried(const CarriedCopy& copy, std::int32_t storage) override {
    add_storage(storage);
    blocks_[storage] = carried_.at(copy.storage);
  }

  void on_event_begin(std::size_t index, Nanoseconds) override { event_ = index; }

  void on_allocate(std::int32_t storage, Bytes bytes) override {
    add_storage(storage);
    if (bytes == 0) return;
    blocks_[storage] = allocator_.allocate(bytes, step_.stream_of(storage));
    note_reserved();
  }

  void on_free_requested(std::int32_t storage) override {
    if (blocks_[storage] != kNoBlock) allocator_.request_free(blocks_[storage]);
  }

  void on_free(std::int32_t storage) override {
    Handle& block = blocks_[storage];
    if (block == kNoBlock) return;  // a storage without bytes
    allocator_.free(block);
    block = kNoBlock;
    note_reserved();
    if (is_resident(storage)) freed_residents_.push_back(storage);
  }

  void on_staging(Bytes bytes) override {
    allocator_.free(allocator_.allocate(bytes, kCopyOutStream));
    note_reserved();
  }

  /// Steps end with an idle device, so what waits for streams is free. A block that the step leaves allocated
  /// replaces the freed resident: that of the renewal or, if the trace has none, the next one of the same
  /// size. The next step frees that block.
  void end_step(const CarriedMemory& carried) {
    for (Handle& block : blocks_)
      if (block != kNoBlock && allocator_.is_free_requested(block))
        allocator_.free(std::exchange(block, kNoBlock));
    for (const Step::StepRenewal& renewal : step_.renewals()) {
      residents_[renewal.old_storage] = std::exchange(blocks_[renewal.new_storage], kNoBlock);
      std::erase(freed_residents_, renewal.old_storage);
    }
    carried_.clear();
    for (const CarriedCopy& copy : carried.copies)
      if (copy.storage >= 0) carried_[copy.storage] = std::exchange(blocks_[copy.storage], kNoBlock);
    for (const std::int32_t resident : freed_residents_) residents_[resident] = take_left_over(resident);
    freed_residents_.clear();
  }

  /// Reserved memory of the current step, by event.
  const std::vector<ReservedAtEvent>& reserved() const { return reserved_; }

 private:
  void add_storage(std::int32_t storage) {
    blocks_.resize(std::max(blocks_.size(), static_cast<std::size_t>(storage) + 1), kNoBlock);
  }

  void note_reserved() {
    const Bytes bytes = allocator_.counters().reserved.current;
    if (reserved_.empty() || reserved_.back().bytes != bytes) reserved_.push_back({event_, bytes});
  }

  bool is_resident(std::int32_t storage) const {
    return static_cast<std::size_t>(storage) < is_resident_.size() && is_resident_[storage] != 0;
  }

  Handle take_left_over(std::int32_t resident) {
    const auto sizes = step_.storage_bytes();
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (blocks_[i] != kNoBlock && is_resident_[i] == 0 && sizes[i] == sizes[resident] &&
          step_.stream_of(static_cast<std::int32_t>(i)) == step_.stream_of(resident))
        return std::exchange(blocks_[i], kNoBlock);
    return kNoBlock;
  }

  const Step& step_;
  CachingAllocator& allocator_;
  std::vector<char> is_resident_;             ///< by storage of the program
  std::map<std::int32_t, Handle> residents_;  ///< blocks of the residents, by storage
  std::vector<Handle> blocks_;                ///< by storage; kNoBlock: no block is allocated
  std::vector<std::int32_t> freed_residents_;
  std::map<std::int32_t, Handle> carried_;  ///< blocks of CarriedCopy::storage
  std::size_t event_ = 0;
  std::vector<ReservedAtEvent> reserved_;
};

/// Memory use of several steps over one allocator, and the reserved memory of the last one.
struct FollowedSteps {
  CacheUse use;
  std::vector<ReservedAtEvent> reserved;
};

/// Replays `steps` steps over one allocator. Throws AllocatorOutOfMemory.
FollowedSteps follow_steps(const Step& step, const Policy& policy, const CacheSetting& setting,
                           const DeviceLimits& limits) {
  CachingAllocator allocator(*step.allocator(), limits);
  CacheListener listener(step, allocator);
  CacheUse use;
  AllocatorState before = allocator.state();
  CarriedMemory carried = everything_on_device(step);
  // The first step finds what a step that offloads nothing has left, so `run` measures the others.
  const int unmeasured = step.carries_tensors() && setting.steps > 1 ? 1 : 0;
  for (int i = 0; i < setting.steps; ++i) {
    listener.begin_step();
    CarriedMemory left = replay_after(carried, step, policy, setting.link, &listener).carried;
    if (i >= unmeasured) {
      use.allocated_peak_bytes = std::max(use.allocated_peak_bytes, allocator.counters().allocated.peak);
      use.reserved_peak_bytes = std::max(use.reserved_peak_bytes, allocator.counters().reserved.peak);
    }
    listener.end_step(left);
    AllocatorState after = allocator.state();
    if (after == before && left == carried && i >= unmeasured) break;  // all further steps would be equal
    before = std::move(after);
    carried = std::move(left);
  }
  return {use, listener.reserved()};
}

/// Replays the steps within the device's limit or, if that is not enough, without any limit; `fits` says
/// which.
FollowedSteps follow_steps(const Step& step, const Policy& policy, const CacheSetting& setting, bool& fits) {
  // The memory held at the beginning is not requested again, so no request would notice that it does not fit.
  fits = sum_up(*step.allocator()).reserved <= setting.device_memory_bytes.value_or(kUnlimitedBytes);
  try {
    return follow_steps(step, policy, setting, {setting.device_memory_bytes, setting.device_total_bytes});
  } catch (const AllocatorOutOfMemory&) {
    fits = false;
    return follow_steps(step, policy, setting, {std::nullopt, setting.device_total_bytes, kUnlimitedBytes});
  }
}

}  // namespace

std::optional<CachePrediction> predict_cache(const Step& step, const Policy& policy,
                                             const CacheSetting& setting) {
  if (!step.allocator()) return std::nullopt;
  CachePrediction prediction;
  prediction.use = follow_steps(step, policy, setting, prediction.fits).use;
  return prediction;
}

std::vector<ReservedAtEvent> reserved_over_step(const Step& step, const Policy& policy,
                                                const CacheSetting& setting) {
  if (!step.allocator()) return {};
  bool fits = true;
  return follow_steps(step, policy, setting, fits).reserved;
}

}  // namespace offprof

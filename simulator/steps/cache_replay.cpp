#include "simulator/steps/cache_replay.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "simulator/allocator/caching_allocator.h"
#include "simulator/steps/logged_step.h"

namespace offprof {
namespace {

using Handle = CachingAllocator::Handle;
constexpr Handle kNoBlock = -1;

/// Carries out the allocator's calls of a program, step after step.
class CacheSteps {
 public:
  CacheSteps(const Step& step, CachingAllocator& allocator)
      : step_(step), allocator_(allocator), is_resident_(step.storage_bytes().size(), 0) {
    for (const std::int32_t storage : step.residents()) is_resident_[storage] = 1;
    for (const auto& [storage, block] : allocator.blocks_by_storage()) residents_[storage] = block;
  }

  void begin_step() {
    blocks_.assign(step_.storage_bytes().size(), kNoBlock);
    for (const auto& [storage, block] : residents_) blocks_[storage] = block;
    allocator_.reset_peaks();
    reserved_.clear();
    note_reserved(0);
  }

  /// Returns false, before the end, once more than `most_reserved` is reserved.
  bool make_calls(const std::vector<AllocatorCall>& calls, Bytes most_reserved) {
    for (const AllocatorCall& call : calls) {
      make(call);
      note_reserved(call.event);
      if (allocator_.counters().reserved.current > most_reserved) return false;
    }
    return true;
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
  void make(const AllocatorCall& call) {
    switch (call.kind) {
      case AllocatorCall::Kind::kAllocate:
        add_storage(call.storage);
        if (call.bytes > 0)
          blocks_[call.storage] = allocator_.allocate(call.bytes, step_.stream_of(call.storage));
        return;
      case AllocatorCall::Kind::kRequestFree:
        if (blocks_[call.storage] != kNoBlock) allocator_.request_free(blocks_[call.storage]);
        return;
      case AllocatorCall::Kind::kFree:
        return free(call.storage);
      case AllocatorCall::Kind::kStage:
        return allocator_.free(allocator_.allocate(call.bytes, kCopyOutStream));
      case AllocatorCall::Kind::kCarry:
        add_storage(call.storage);
        blocks_[call.storage] = carried_.at(call.older_storage);
        return;
    }
  }

  void free(std::int32_t storage) {
    Handle& block = blocks_[storage];
    if (block == kNoBlock) return;  // a storage without bytes
    allocator_.free(block);
    block = kNoBlock;
    if (is_resident(storage)) freed_residents_.push_back(storage);
  }

  void add_storage(std::int32_t storage) {
    if (static_cast<std::size_t>(storage) >= blocks_.size()) blocks_.resize(storage + 1, kNoBlock);
  }

  void note_reserved(std::size_t event) {
    const Bytes bytes = allocator_.counters().reserved.current;
    if (reserved_.empty() || reserved_.back().bytes != bytes) reserved_.push_back({event, bytes});
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
  std::vector<ReservedAtEvent> reserved_;
};

/// Returns true if a step replays alike after both, and calls the allocator for the same storages.
bool begin_alike(const CarriedMemory& a, const CarriedMemory& b) {
  return a == b && std::ranges::equal(a.copies, b.copies, {}, &CarriedCopy::storage, &CarriedCopy::storage);
}

/// A step under a policy, replayed anew only where it begins with other memory than the last one did.
class ReplayedSteps {
 public:
  ReplayedSteps(const Step& step, const Policy& policy, const Link& link)
      : step_(step), policy_(policy), link_(link) {}

  const LoggedStep& after(const CarriedMemory& carried) {
    if (!last_ || !begin_alike(carried, begun_with_)) {
      last_ = log_step(carried, step_, policy_, link_);
      begun_with_ = carried;
    }
    return *last_;
  }

 private:
  const Step& step_;
  const Policy& policy_;
  const Link& link_;
  CarriedMemory begun_with_;
  std::optional<LoggedStep> last_;
};

/// Memory use of several steps over one allocator, and the reserved memory of the last one.
struct FollowedSteps {
  CacheUse use;
  std::vector<ReservedAtEvent> reserved;
};

/// Follows one allocator through the steps. Returns nullopt if a measured one reserves more than
/// `most_reserved`. Throws AllocatorOutOfMemory.
std::optional<FollowedSteps> follow_steps(const Step& step, ReplayedSteps& steps, int count,
                                          const DeviceLimits& limits, Bytes most_reserved) {
  CachingAllocator allocator(*step.allocator(), limits);
  CacheSteps cache(step, allocator);
  CacheUse use;
  AllocatorState before = allocator.state();
  CarriedMemory carried = everything_on_device(step);
  // The first step finds what a step that offloads nothing has left, so `run` measures the others.
  const int unmeasured = step.carries_tensors() && count > 1 ? 1 : 0;
  for (int i = 0; i < count; ++i) {
    const bool is_measured = i >= unmeasured;
    const LoggedStep& logged = steps.after(carried);
    const CarriedMemory& left = logged.prediction.carried;
    cache.begin_step();
    if (!cache.make_calls(logged.calls, is_measured ? most_reserved : kUnlimitedBytes)) return std::nullopt;
    if (is_measured) {
      use.allocated_peak_bytes = std::max(use.allocated_peak_bytes, allocator.counters().allocated.peak);
      use.reserved_peak_bytes = std::max(use.reserved_peak_bytes, allocator.counters().reserved.peak);
    }
    cache.end_step(left);
    AllocatorState after = allocator.state();
    if (after == before && left == carried && is_measured) break;  // all further steps would be equal
    before = std::move(after);
    carried = left;
  }
  if (use.reserved_peak_bytes > most_reserved) return std::nullopt;  // from the beginning
  return FollowedSteps{use, cache.reserved()};
}

/// Follows the steps within the device's limit or, if that is not enough, without any limit; `fits` says
/// which. Returns nullopt if they reserve more than `most_reserved`.
std::optional<FollowedSteps> follow_steps(const Step& step, ReplayedSteps& steps, const CacheSetting& setting,
                                          bool& fits, Bytes most_reserved = kUnlimitedBytes) {
  // The memory held at the beginning is not requested again, so no request would notice that it does not fit.
  fits = sum_up(*step.allocator()).reserved <= setting.device_memory_bytes.value_or(kUnlimitedBytes);
  try {
    return follow_steps(step, steps, setting.steps, {setting.device_memory_bytes, setting.device_total_bytes},
                        most_reserved);
  } catch (const AllocatorOutOfMemory&) {
    fits = false;
    return follow_steps(step, steps, setting.steps,
                        {std::nullopt, setting.device_total_bytes, kUnlimitedBytes}, most_reserved);
  }
}

}  // namespace

void add_cache_use(const CacheUse& use, Metrics& metrics) {
  metrics.device_allocated_peak_bytes = use.allocated_peak_bytes;
  metrics.device_reserved_peak_bytes = use.reserved_peak_bytes;
}

Metrics predict_step(const Step& step, const Policy& policy, const CacheSetting& setting) {
  return *predict_step_within(kUnlimitedBytes, step, policy, setting);
}

std::optional<Metrics> predict_step_within(Bytes most_taken, const Step& step, const Policy& policy,
                                           const CacheSetting& setting) {
  ReplayedSteps steps(step, policy, setting.link);
  Metrics metrics = steps.after(steady_memory(step, policy, setting.link)).prediction.metrics;
  if (step.allocator()) {
    bool fits = true;
    const auto followed = follow_steps(step, steps, setting, fits, most_taken);
    if (!followed) return std::nullopt;
    add_cache_use(followed->use, metrics);
  }
  if (device_bytes_taken(metrics) > most_taken) return std::nullopt;
  return metrics;
}

std::optional<CachePrediction> predict_cache(const Step& step, const Policy& policy,
                                             const CacheSetting& setting) {
  if (!step.allocator()) return std::nullopt;
  ReplayedSteps steps(step, policy, setting.link);
  CachePrediction prediction;
  prediction.use = follow_steps(step, steps, setting, prediction.fits)->use;
  return prediction;
}

std::vector<ReservedAtEvent> reserved_over_step(const Step& step, const Policy& policy,
                                                const CacheSetting& setting) {
  if (!step.allocator()) return {};
  ReplayedSteps steps(step, policy, setting.link);
  bool fits = true;
  return follow_steps(step, steps, setting, fits)->reserved;
}

}  // namespace offprof

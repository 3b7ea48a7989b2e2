#include "engine/schedule/offload_scheduler.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "traces/check.h"

namespace offprof {

PackDecision OffloadScheduler::pack(SavedId tensor, const PackRequest& request) {
  OFFPROF_CHECK(tensor == static_cast<SavedId>(copy_of_.size()));
  copy_of_.push_back(kKept);
  kept_bytes_.push_back(0);
  if (request.movability != Movability::kMovable) return keep(tensor, request, reason_of(request.movability));
  if (!policy_.threshold_bytes) return keep(tensor, request, PlacementReason::kNothingOffloaded);
  if (request.storage_bytes < *policy_.threshold_bytes)
    return keep(tensor, request, PlacementReason::kBelowThreshold);
  const auto live = live_copies_.find({request.storage, request.version});
  if (live != live_copies_.end()) return share(tensor, live->second);
  if (!is_planned(tensor)) return keep(tensor, request, PlacementReason::kNotInPlan);
  const Bytes cap = policy_.host_memory_bytes.value_or(std::numeric_limits<Bytes>::max());
  if (request.storage_bytes > cap - host_bytes_) return keep(tensor, request, PlacementReason::kHostFull);
  return offload(tensor, request);
}

bool OffloadScheduler::is_planned(SavedId tensor) const {
  return !policy_.tensors || std::binary_search(policy_.tensors->begin(), policy_.tensors->end(), tensor);
}

PackDecision OffloadScheduler::keep(SavedId tensor, const PackRequest& request, PlacementReason reason) {
  kept_bytes_[tensor] = request.tensor_bytes;
  executor_.execute({CommandKind::kKeep, tensor, -1, request.tensor_bytes});
  return {Placement::kDevice, reason};
}

PackDecision OffloadScheduler::share(SavedId tensor, CopyId copy) {
  copy_of_[tensor] = copy;
  ++copies_[copy].users;
  return {Placement::kHost, PlacementReason::kSharedCopy, copy};
}

PackDecision OffloadScheduler::offload(SavedId tensor, const PackRequest& request) {
  const Bytes bytes = request.storage_bytes;
  const bool stashable = stash_could_hold(bytes);
  while (stashable && !stash_has_room(bytes)) wait_and_drop(stash_.front());

  const auto id = static_cast<CopyId>(copies_.size());
  copies_.push_back({{request.storage, request.version}, tensor, bytes, 1});
  live_copies_.emplace(copies_[id].key, id);
  copy_of_[tensor] = id;
  host_bytes_ += bytes;
  command(CommandKind::kCopyOut, id);
  if (stashable) {
    copies_[id].stashed = true;
    stash_.push_back(id);
    stash_bytes_ += bytes;
  } else {
    wait_and_drop(id);
  }
  return {Placement::kHost, PlacementReason::kOffloaded, id};
}

bool OffloadScheduler::stash_could_hold(Bytes bytes) const {
  if (!policy_.stash_count && !policy_.stash_bytes) return false;
  return policy_.stash_count.value_or(1) > 0 && bytes <= policy_.stash_bytes.value_or(bytes);
}

bool OffloadScheduler::stash_has_room(Bytes bytes) const {
  const auto count = static_cast<std::int64_t>(stash_.size());
  return (!policy_.stash_count || count < *policy_.stash_count) &&
         (!policy_.stash_bytes || stash_bytes_ + bytes <= *policy_.stash_bytes);
}

void OffloadScheduler::unstash(CopyId id) {
  Copy& copy = copies_[id];
  if (!copy.stashed) return;
  copy.stashed = false;
  stash_bytes_ -= copy.bytes;
  stash_.erase(std::find(stash_.begin(), stash_.end(), id));
}

void OffloadScheduler::wait_and_drop(CopyId id) {
  unstash(id);
  Copy& copy = copies_[id];
  if (copy.out_pending) command(CommandKind::kWaitOut, id);
  copy.out_pending = false;
  command(CommandKind::kDrop, id);
  copy.on_device = false;
}

void OffloadScheduler::unpack(SavedId tensor) {
  const CopyId id = copy_of_[tensor];
  if (id == kKept) return prefetch_after(tensor);
  unstash(id);  // from here on it stays until its last release
  if (!copies_[id].on_device) copy_in(id);
  if (copies_[id].ahead) {
    copies_[id].ahead = false;
    ahead_bytes_ -= copies_[id].bytes;
  }
  prefetch_after(tensor);
  // The copies that are wanted next are queued before the compute stream waits, so that the link does not
  // idle.
  if (copies_[id].in_pending) command(CommandKind::kWaitIn, id);
  copies_[id].in_pending = false;
}

void OffloadScheduler::copy_in(CopyId id) {
  command(CommandKind::kCopyIn, id);
  copies_[id].on_device = true;
  copies_[id].in_pending = true;
}

void OffloadScheduler::begin_backward() {
  if (backward_order_.empty()) {
    reverse_order_.resize(copy_of_.size());
    std::iota(reverse_order_.rbegin(), reverse_order_.rend(), 0);
    backward_order_ = reverse_order_;
  }
  order_position_.assign(copy_of_.size(), -1);
  for (std::size_t i = backward_order_.size(); i-- > 0;)
    if (backward_order_[i] < static_cast<SavedId>(order_position_.size()))
      order_position_[backward_order_[i]] = static_cast<std::int32_t>(i);
}

void OffloadScheduler::prefetch_after(SavedId tensor) {
  if (policy_.prefetch_bytes == 0) return;
  if (order_position_.empty()) begin_backward();
  if (tensor < static_cast<SavedId>(order_position_.size()) && order_position_[tensor] >= 0)
    next_in_order_ = std::max<std::size_t>(next_in_order_, order_position_[tensor] + 1);
  for (; next_in_order_ < backward_order_.size(); ++next_in_order_) {
    const CopyId id = reloadable_copy_of(backward_order_[next_in_order_]);
    if (id == kKept) continue;
    if (ahead_bytes_ + copies_[id].bytes > policy_.prefetch_bytes) return;
    copy_in(id);
    copies_[id].ahead = true;
    ahead_bytes_ += copies_[id].bytes;
  }
}

CopyId OffloadScheduler::reloadable_copy_of(SavedId tensor) const {
  if (tensor >= static_cast<SavedId>(copy_of_.size())) return kKept;
  const CopyId id = copy_of_[tensor];
  return id == kKept || copies_[id].users == 0 || copies_[id].on_device ? kKept : id;
}

void OffloadScheduler::release(SavedId tensor) {
  const CopyId id = copy_of_[tensor];
  if (id == kKept) {
    executor_.execute({CommandKind::kLetGo, tensor, -1, kept_bytes_[tensor]});
  } else if (--copies_[id].users == 0) {
    free(id);
  }
}

void OffloadScheduler::free(CopyId id) {
  unstash(id);
  Copy& copy = copies_[id];
  if (copy.out_pending) command(CommandKind::kWaitOut, id);
  if (copy.in_pending) command(CommandKind::kWaitIn, id);
  if (copy.ahead) ahead_bytes_ -= copy.bytes;
  if (copy.on_device) command(CommandKind::kDrop, id);
  copy.out_pending = copy.in_pending = copy.ahead = copy.on_device = false;
  command(CommandKind::kFreeHost, id);
  host_bytes_ -= copy.bytes;
  live_copies_.erase(copy.key);
}

void OffloadScheduler::command(CommandKind kind, CopyId id) {
  executor_.execute({kind, copies_[id].first_tensor, id, copies_[id].bytes});
}

}  // namespace offprof

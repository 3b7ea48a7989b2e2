#include "engine/scheduler/offload_scheduler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "traces/base/check.h"

namespace offprof {
namespace {

/// Returns why the policy keeps the tensor on the device whatever its plan says; nullopt if it does not.
std::optional<PlacementReason> reason_to_keep(const Policy& policy, const PackRequest& request,
                                              const RuledPlacement& rule) {
  if (request.movability != Movability::kMovable) return reason_of(request.movability);
  if (rule) {
    const bool stays = rule->place == Place::kDevice && rule->encoded_bytes == 0;
    return stays ? std::optional(rule->reason) : std::nullopt;
  }
  if (!policy.threshold_bytes) return PlacementReason::kNothingOffloaded;
  if (request.storage_bytes < *policy.threshold_bytes) return PlacementReason::kBelowThreshold;
  return std::nullopt;
}

/// True if the policy has a stash that may hold so many copies with so many bytes in total.
bool stash_allows(const Policy& policy, std::int64_t count, Bytes bytes) {
  return (policy.stash_count || policy.stash_bytes) && count <= policy.stash_count.value_or(count) &&
         bytes <= policy.stash_bytes.value_or(bytes);
}

bool plan_names(const Policy& policy, SavedId tensor) {
  return !policy.tensors || std::ranges::binary_search(*policy.tensors, tensor);
}

/// The sum to compare with the prefetch window, whose 0 stands for no prefetch.
Bytes sum_ahead(Bytes bytes) {
  return std::max<Bytes>(bytes, 1);
}

/// Size of the copy of a tensor: that of its storage, or of the encoded storage.
Bytes bytes_of_copy(const PackRequest& request, const RuledPlacement& rule) {
  return rule && rule->encoded_bytes > 0 ? rule->encoded_bytes : request.storage_bytes;
}

}  // namespace

PackDecision OffloadScheduler::pack(SavedId tensor, const PackRequest& request, const RuledPlacement& rule) {
  OFFPROF_CHECK(tensor == static_cast<SavedId>(copy_of_.size()));
  copy_of_.push_back(kKept);
  kept_bytes_.push_back(0);
  kept_users_.push_back(0);
  if (const auto reason = reason_to_keep(policy_, request, rule)) return keep(tensor, request, *reason);
  const CopyId live = live_copies_.find({request.storage, request.version});
  if (live != CopyIndex::kNone) return share(tensor, live);
  if (!rule && !plan_names(policy_, tensor)) return keep(tensor, request, PlacementReason::kNotInPlan);
  return place(tensor, request, rule.value_or(ResolvedPlacement{Place::kHost, PlacementReason::kOffloaded}));
}

bool OffloadScheduler::host_has_room(Bytes bytes) const {
  if (!policy_.host_memory_bytes) return true;
  return bytes <= *policy_.host_memory_bytes - host_bytes_ - executor_->older_host_bytes();
}

std::unique_ptr<Scheduler> OffloadScheduler::clone(const Policy& policy, Executor& executor) const {
  OFFPROF_CHECK(policy.scheduler == SchedulerKind::kOffload);
  auto copy = std::make_unique<OffloadScheduler>(*this);
  copy->policy_ = policy;
  copy->executor_ = &executor;
  return copy;
}

bool OffloadScheduler::starts_alike(const Policy& other) const {
  return other.scheduler == policy_.scheduler && other.copy_streams == policy_.copy_streams &&
         other.host_memory_bytes == policy_.host_memory_bytes &&
         other.disk_memory_bytes == policy_.disk_memory_bytes &&
         other.disk_buffer_bytes == policy_.disk_buffer_bytes && other.rules == policy_.rules;
}

/// Different stashes do the same as long as both have room.
bool OffloadScheduler::packs_alike(SavedId tensor, const PackRequest& request, const RuledPlacement& rule,
                                   const Policy& other) const {
  const auto reason = reason_to_keep(policy_, request, rule);
  if (reason != reason_to_keep(other, request, rule)) return false;
  if (reason || live_copies_.find({request.storage, request.version}) != CopyIndex::kNone) return true;
  const bool moves = rule || plan_names(policy_, tensor);
  if (moves != (rule || plan_names(other, tensor))) return false;
  if (!moves) return true;
  if (other.stash_count == policy_.stash_count && other.stash_bytes == policy_.stash_bytes) return true;
  const std::int64_t count = stash_count_ + 1;
  const Bytes bytes = stash_bytes_ + bytes_of_copy(request, rule);
  return stash_allows(policy_, count, bytes) && stash_allows(other, count, bytes);
}

PackDecision OffloadScheduler::keep(SavedId tensor, const PackRequest& request, PlacementReason reason) {
  kept_bytes_[tensor] = request.tensor_bytes;
  kept_users_[tensor] = 1;
  executor_->execute(Keep{{tensor, request.tensor_bytes}});
  return {Place::kDevice, reason};
}

PackDecision OffloadScheduler::share(SavedId tensor, CopyId copy) {
  copy_of_[tensor] = copy;
  ++copies_[copy].users;
  return {copies_[copy].place, PlacementReason::kSharedCopy, copy};
}

/// Creates the copy of the first tensor of its content.
PackDecision OffloadScheduler::place(SavedId tensor, const PackRequest& request,
                                     const ResolvedPlacement& asked) {
  if (asked.place == Place::kRecompute) return discard(tensor, request, asked);
  const bool is_encoded = asked.encoded_bytes > 0;
  const Bytes bytes = bytes_of_copy(request, asked);
  const bool asks_disk = takes_disk(asked.place);
  const auto next = static_cast<CopyId>(copies_.size());
  const auto found = place_with_room(asked, {tensor, next, bytes});
  if (!found)
    return keep(tensor, request, asks_disk ? PlacementReason::kDiskFull : PlacementReason::kHostFull);
  const ResolvedPlacement& placement = *found;
  const bool goes_out = placement.place != Place::kDevice;
  const bool stashable = goes_out && make_stash_room(bytes);

  const CopyId id = add_copy(tensor, request,
                             {.first_tensor = tensor,
                              .users = 1,
                              .bytes = bytes,
                              .decoded_bytes = is_encoded ? request.storage_bytes : 0,
                              .place = placement.place,
                              .state = goes_out ? State::kGoingOut : State::kOnDevice});
  if (is_encoded) executor_->execute(Encode{fields_of(id), asked.transform});
  if (goes_out) send_out(id, stashable);
  return {placement.place, placement.reason, id};
}

/// Returns nullopt if only the device has room for the copy.
std::optional<ResolvedPlacement> OffloadScheduler::place_with_room(ResolvedPlacement placement,
                                                                   const CopyCommand& copy) {
  if (takes_disk(placement.place) && !take_disk(copy)) {
    placement.place = Place::kHost;
    placement.reason = PlacementReason::kDiskFull;
  }
  if (placement.place == Place::kHost && !host_has_room(copy.bytes)) return std::nullopt;
  return placement;
}

/// Returns false if the disk is full.
bool OffloadScheduler::take_disk(const CopyCommand& copy) {
  const Bytes most = policy_.disk_memory_bytes.value_or(std::numeric_limits<Bytes>::max());
  if (copy.bytes > most - disk_bytes_ || !executor_->try_execute(TakeDisk{copy})) return false;
  disk_bytes_ += copy.bytes;
  return true;
}

CopyId OffloadScheduler::add_copy(SavedId tensor, const PackRequest& request, const Copy& copy) {
  const auto id = static_cast<CopyId>(copies_.size());
  copies_.push_back(copy);
  smallest_copy_bytes_ = std::min(smallest_copy_bytes_, sum_ahead(copy.bytes));
  live_copies_.add({request.storage, request.version});
  copy_of_[tensor] = id;
  return id;
}

void OffloadScheduler::send_out(CopyId id, bool stashable) {
  if (is_on_disk(id))
    window_.make_room(copies_[id].bytes, *executor_);
  else
    host_bytes_ += copies_[id].bytes;
  issue<CopyOut>(id);
  if (is_on_disk(id)) window_.write(fields_of(id), *executor_);
  if (!stashable) return wait_and_drop(id);
  copies_[id].state = State::kStashed;
  ++stash_count_;
  stash_bytes_ += copies_[id].bytes;
}

/// Drops the oldest copies in the stash until it has room. Returns false if even an empty stash has none.
bool OffloadScheduler::make_stash_room(Bytes bytes) {
  if (!stash_allows(policy_, 1, bytes)) {
    note_refusal(1, bytes);
    return false;
  }
  while (!stash_allows(policy_, stash_count_ + 1, stash_bytes_ + bytes)) {
    note_refusal(stash_count_ + 1, stash_bytes_ + bytes);
    wait_and_drop(oldest_stashed());
  }
  limit_ranges_.stash_count.allow(stash_count_ + 1);
  limit_ranges_.stash_bytes.allow(stash_bytes_ + bytes);
  return true;
}

/// Notes which limits of the stash refuse to hold so much. A missing stash is one of no copies.
void OffloadScheduler::note_refusal(std::int64_t count, Bytes bytes) {
  const bool has_stash = policy_.stash_count || policy_.stash_bytes;
  if (!has_stash || count > policy_.stash_count.value_or(count)) limit_ranges_.stash_count.refuse(count);
  if (bytes > policy_.stash_bytes.value_or(bytes)) limit_ranges_.stash_bytes.refuse(bytes);
}

CopyId OffloadScheduler::oldest_stashed() {
  while (copies_[first_stashed_].state != State::kStashed) ++first_stashed_;
  return first_stashed_;
}

/// Takes the copy out of the stash, or of the copies that are ahead: it no longer counts against their
/// limits.
void OffloadScheduler::claim(CopyId id) {
  Copy& copy = copies_[id];
  if (copy.state == State::kStashed) {
    copy.state = State::kGoingOut;
    --stash_count_;
    stash_bytes_ -= copy.bytes;
  } else if (copy.state == State::kAhead) {
    copy.state = State::kComingIn;
    ahead_bytes_ -= copy.bytes;
  }
}

/// Drops the copy's device storage, if it has one.
void OffloadScheduler::wait_and_drop(CopyId id) {
  claim(id);
  wait_out(id);
  wait_in(id);
  Copy& copy = copies_[id];
  if (!copy.is_on_device()) return;
  executor_->execute(Drop{{copy.first_tensor, id, copy.device_bytes()}});
  copy.state = State::kAway;
}

void OffloadScheduler::wait_out(CopyId id) {
  if (copies_[id].state != State::kGoingOut) return;
  issue<WaitOut>(id);
  copies_[id].state = State::kOnDevice;
}

void OffloadScheduler::wait_in(CopyId id) {
  if (copies_[id].state != State::kComingIn) return;
  issue<WaitIn>(id);
  copies_[id].state = State::kOnDevice;
  if (is_on_disk(id)) window_.came_in(id, *executor_);
}

void OffloadScheduler::unpack(SavedId tensor) {
  const CopyId id = copy_of_[tensor];
  if (id == kKept) return prefetch_after(tensor);
  ask_for(id);
  prefetch_after(tensor);
  // Queue the copies that are needed next before the compute stream waits, so that the link stays busy.
  make_ready(id);
}

/// Keeps the copy, or the sources of its recomputation, on the device from now until their last release.
void OffloadScheduler::ask_for(CopyId id) {
  const Copy& copy = copies_[id];
  if (copy.state == State::kToRecompute) {
    for (const SavedId source : copy.recomputation->sources)
      if (copy_of_[source] != kKept) ask_for(copy_of_[source]);
    return;
  }
  claim(id);
  if (copy.state == State::kAway)
    copy_in(id);
  else if (is_on_disk(id))
    window_.set_unneeded(id);
}

/// Makes the values of an unpacked copy available to the compute stream.
void OffloadScheduler::make_ready(CopyId id) {
  if (copies_[id].state == State::kToRecompute) return recompute(id);
  wait_in(id);
  if (copies_[id].is_encoded()) decode(id);
}

void OffloadScheduler::copy_in(CopyId id) {
  if (is_on_disk(id)) window_.bring(fields_of(id), *executor_);
  make_room_for(CopyIn{fields_of(id)});
  if (is_on_disk(id)) window_.hold(id);
  copies_[id].state = State::kComingIn;
}

/// Decodes a copy. The encoded storage is dropped, and a copy out may still read it, so wait for that first.
void OffloadScheduler::decode(CopyId id) {
  wait_out(id);
  make_room_for(Decode{{copies_[id].first_tensor, id, copies_[id].decoded_bytes}});
  copies_[id].state = State::kDecoded;
}

/// Carries out a command for an unpacked copy and drops prefetched and stashed copies if it needs their
/// memory.
void OffloadScheduler::make_room_for(const RefusableCommand& command) {
  if (executor_->try_execute(command)) return;
  memory_is_short_ = true;
  drop_all(State::kAhead);
  drop_all(State::kStashed);
  executor_->execute(as_command(command));
}

/// Returns false if the device has no memory for the copy.
bool OffloadScheduler::copy_in_ahead(CopyId id) {
  if (!executor_->try_execute(CopyIn{fields_of(id)})) return false;
  if (is_on_disk(id)) window_.hold(id);
  copies_[id].state = State::kAhead;
  ahead_bytes_ += copies_[id].bytes;
  return true;
}

void OffloadScheduler::drop_all(State state) {
  for (CopyId id = 0; id < static_cast<CopyId>(copies_.size()); ++id)
    if (copies_[id].state == state) wait_and_drop(id);
}

void OffloadScheduler::begin_backward() {
  if (backward_order_.empty()) {
    reverse_order_.resize(copy_of_.size());
    std::iota(reverse_order_.rbegin(), reverse_order_.rend(), 0);
  }
  order_position_.assign(copy_of_.size(), -1);
  const std::span<const SavedId> tensors = order();
  for (std::size_t i = tensors.size(); i-- > 0;)
    if (tensors[i] < static_cast<SavedId>(order_position_.size()))
      order_position_[tensors[i]] = static_cast<std::int32_t>(i);
}

std::span<const SavedId> OffloadScheduler::order() const {
  return backward_order_.empty() ? std::span<const SavedId>(reverse_order_) : backward_order_;
}

void OffloadScheduler::prefetch_after(SavedId tensor) {
  if (order_position_.empty()) begin_backward();
  // Without a window, copy_in_next only notes the least refused sum, which is at least the smallest copy.
  const bool looks_ahead =
      policy_.prefetch_bytes > 0 || limit_ranges_.prefetch_bytes.end > smallest_copy_bytes_;
  const bool copies_ahead = looks_ahead && !memory_is_short_;
  if (!copies_ahead && disk_bytes_ == 0) return;
  if (tensor < static_cast<SavedId>(order_position_.size()) && order_position_[tensor] >= 0) {
    const auto next = static_cast<std::size_t>(order_position_[tensor]) + 1;
    next_in_order_ = std::max(next_in_order_, next);
    next_to_read_ = std::max(next_to_read_, next);
  }
  if (copies_ahead) copy_in_next();
  if (disk_bytes_ > 0) read_next();
}

void OffloadScheduler::copy_in_next() {
  const std::span<const SavedId> tensors = order();
  while (next_in_order_ < tensors.size()) {
    const CopyId id = reloadable_copy_of(tensors[next_in_order_]);
    if (id == kKept) {
      ++next_in_order_;
      continue;
    }
    const Bytes sum = sum_ahead(ahead_bytes_ + copies_[id].bytes);
    if (sum > policy_.prefetch_bytes) return limit_ranges_.prefetch_bytes.refuse(sum);
    limit_ranges_.prefetch_bytes.allow(sum);
    if (is_on_disk(id) && !window_.bring_ahead(fields_of(id), *executor_)) return;
    if (copy_in_ahead(id)) continue;
    memory_is_short_ = true;
    return drop_all(State::kAhead);
  }
}

void OffloadScheduler::read_next() {
  const std::span<const SavedId> tensors = order();
  for (; next_to_read_ < tensors.size(); ++next_to_read_) {
    const CopyId id = reloadable_copy_of(tensors[next_to_read_]);
    if (id == kKept || !is_on_disk(id)) continue;
    if (!window_.bring_ahead(fields_of(id), *executor_)) return;
  }
}

CopyId OffloadScheduler::reloadable_copy_of(SavedId tensor) const {
  if (tensor >= static_cast<SavedId>(copy_of_.size())) return kKept;
  const CopyId id = copy_of_[tensor];
  return id == kKept ? kKept : reloadable_copy(id);
}

void OffloadScheduler::release(SavedId tensor) {
  release_kept(tensor);
}

/// Drops one hold on a saved tensor: autograd has released it, or a tensor recomputed from it exists.
void OffloadScheduler::release_kept(SavedId tensor) {
  const CopyId id = copy_of_[tensor];
  if (id != kKept) {
    if (--copies_[id].users == 0) free(id);
  } else if (--kept_users_[tensor] == 0) {
    executor_->execute(ReleaseKept{{tensor, kept_bytes_[tensor]}});
  }
}

void OffloadScheduler::free(CopyId id) {
  wait_and_drop(id);
  if (copies_[id].place == Place::kHost) {
    issue<FreeHost>(id);
    host_bytes_ -= copies_[id].bytes;
  }
  if (is_on_disk(id)) {
    window_.free(id, *executor_);
    issue<FreeDisk>(id);
    disk_bytes_ -= copies_[id].bytes;
  }
  live_copies_.remove(id);
  const State before = std::exchange(copies_[id].state, State::kFreed);
  if (before == State::kToRecompute) release_sources(*copies_[id].recomputation);
}

}  // namespace offprof

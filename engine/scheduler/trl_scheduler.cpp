#include "engine/scheduler/trl_scheduler.h"

#include <algorithm>

#include "traces/base/check.h"

namespace offprof {

TrlScheduler::TrlScheduler(const Policy& policy, Executor& executor) : executor_(&executor) {
  take_limits(policy);
}

void TrlScheduler::take_limits(const Policy& policy) {
  threshold_bytes_ = policy.threshold_bytes.value_or(0);
  offloads_any_ = policy.threshold_bytes.has_value();
  stash_count_ = policy.stash_count.value_or(0);
}

/// Issues a command on the tensor's copy.
template <typename EachCommand>
void TrlScheduler::issue(SavedId tensor) {
  executor_->execute(EachCommand{{tensor, entries_[tensor].copy, entries_[tensor].bytes}});
}

std::unique_ptr<Scheduler> TrlScheduler::clone(const Policy& policy, Executor& executor) const {
  OFFPROF_CHECK(policy.scheduler == SchedulerKind::kTrl);
  auto copy = std::make_unique<TrlScheduler>(*this);
  copy->take_limits(policy);
  copy->executor_ = &executor;
  return copy;
}

PackDecision TrlScheduler::pack(SavedId tensor, const PackRequest& request, const RuledPlacement& rule) {
  OFFPROF_CHECK(tensor == static_cast<SavedId>(entries_.size()));
  Entry& entry = entries_.emplace_back();
  entry.bytes = request.tensor_bytes;
  if (rule && rule->place == Place::kDevice) {
    executor_->execute(Keep{{tensor, entry.bytes}});
    return {Place::kDevice, rule->reason};
  }
  entry.id = next_id_++;
  if (!offloads(request)) {
    executor_->execute(Keep{{tensor, entry.bytes}});
    return {Place::kDevice, reason_to_keep(request)};
  }
  while (!forward_stash_.empty() && entries_[forward_stash_.front()].id <= entry.id - stash_count_)
    drop_from_forward_stash();
  entry.copy = next_copy_++;
  entry.in_forward_stash = true;
  forward_stash_.push_back(tensor);
  issue<CopyOut>(tensor);
  return {Place::kHost, PlacementReason::kOffloaded, entry.copy};
}

bool TrlScheduler::offloads(const PackRequest& request) const {
  return offloads_any_ && !request.is_parameter && request.tensor_bytes >= threshold_bytes_ &&
         request.movability != Movability::kUnsupportedLayout && request.movability != Movability::kEmpty &&
         request.movability != Movability::kParameterGroup && request.movability != Movability::kUnpacked;
}

PlacementReason TrlScheduler::reason_to_keep(const PackRequest& request) const {
  switch (request.movability) {
    case Movability::kUnsupportedLayout:
      return PlacementReason::kUnsupportedLayout;
    case Movability::kEmpty:
      return PlacementReason::kEmpty;
    case Movability::kParameterGroup:
      return PlacementReason::kParameterGroup;
    case Movability::kUnpacked:
      return PlacementReason::kUnpacked;
    default:
      break;
  }
  if (request.is_parameter) return PlacementReason::kParameter;
  return offloads_any_ ? PlacementReason::kBelowThreshold : PlacementReason::kNothingOffloaded;
}

void TrlScheduler::unpack(SavedId tensor) {
  Entry& entry = entries_[tensor];
  if (!entry.tracked)
    return;  // second unpack: TRL raises an error; here the tensor that autograd still holds is used
  if (entry.copy < 0) {
    entry.tracked = false;
    executor_->execute(ReleaseKept{{tensor, entry.bytes}});
    return;
  }
  if (!node_open_) {
    node_open_ = true;
    previous_node_ = backward_stash_;
  }
  entry.tracked = false;
  if (!entry.in_forward_stash) {
    issue<CopyIn>(tensor);
    issue<WaitIn>(tensor);
    entry.in_backward_stash = true;
    backward_stash_.push_back(tensor);
    issue<FreeHost>(tensor);
  }
}

void TrlScheduler::node_end(std::span<const SavedId> tensors, std::span<const SavedId> escaped) {
  if (!node_open_) return;
  node_open_ = false;
  for (SavedId tensor : tensors) {
    const bool used_on = std::find(escaped.begin(), escaped.end(), tensor) != escaped.end();
    if (used_on && entries_[tensor].in_backward_stash) drop_from_backward_stash(tensor);
  }
  while (!forward_stash_.empty()) drop_from_forward_stash();
  for (SavedId tensor : previous_node_)
    if (entries_[tensor].in_backward_stash) drop_from_backward_stash(tensor);
  previous_node_.clear();
}

void TrlScheduler::backward_end() {
  while (!backward_stash_.empty()) drop_from_backward_stash(backward_stash_.front());
}

void TrlScheduler::release(SavedId tensor) {
  Entry& entry = entries_[tensor];
  if (!entry.tracked) return;
  entry.tracked = false;
  if (entry.copy < 0) {
    executor_->execute(ReleaseKept{{tensor, entry.bytes}});
    return;
  }
  if (entry.in_forward_stash) {
    issue<WaitOut>(tensor);
    issue<Drop>(tensor);
    entry.in_forward_stash = false;
    std::erase(forward_stash_, tensor);
  }
  issue<FreeHost>(tensor);
}

void TrlScheduler::drop_from_forward_stash() {
  const SavedId tensor = forward_stash_.front();
  forward_stash_.pop_front();
  entries_[tensor].in_forward_stash = false;
  issue<WaitOut>(tensor);
  issue<Drop>(tensor);
  // TRL freed its host tensor when backward unpacked it; only now has the copy into it been waited for.
  if (!entries_[tensor].tracked) issue<FreeHost>(tensor);
}

void TrlScheduler::drop_from_backward_stash(SavedId tensor) {
  entries_[tensor].in_backward_stash = false;
  std::erase(backward_stash_, tensor);
  issue<Drop>(tensor);
}

}  // namespace offprof

#include "simulator/tuner/settings/setting_span.h"

#include <algorithm>

namespace offprof {

SpanListener::SpanListener(const Step& step, const Policy& policy)
    : step_(step),
      held_(step.storage_bytes().size(), 0),
      live_bytes_(step.resident_bytes()),
      least_peak_(step.resident_bytes()),
      counts_(!policy.stash_bytes),
      copy_of_(step.requests().size(), -1),
      order_position_(step.requests().size(), -1) {
  for (const std::int32_t storage : step.residents()) ++held_[storage];
  const auto order = step.backward_order();
  for (std::size_t i = order.size(); i-- > 0;)
    order_position_[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
}

std::int32_t SpanListener::own_storage(std::int32_t storage) const {
  const auto programs = static_cast<std::int32_t>(held_.size());
  return storage < programs ? storage : copied_in_[storage - programs];
}

void SpanListener::on_allocate(std::int32_t storage, Bytes bytes) {
  if (held_[own_storage(storage)]++ > 0) return;
  live_bytes_ += bytes;
  least_peak_ = std::max(least_peak_, live_bytes_);
}

void SpanListener::on_free(std::int32_t storage) {
  if (--held_[own_storage(storage)] == 0) live_bytes_ -= step_.storage_bytes()[own_storage(storage)];
}

void SpanListener::on_event_begin(std::size_t index, Nanoseconds) {
  event_ = step_.events()[index];
  made_in_event_ = -1;
  if (event_.kind != EventKind::kUnpack) return;
  const CopyId id = copy_of_[static_cast<std::size_t>(event_.id)];
  if (id < 0) return;
  leave_stash(id);
  if (copies_[id].ahead) ++asked_copies_in_;
  not_ahead(id);
}

void SpanListener::on_event(std::size_t, Nanoseconds) {
  if (event_.kind == EventKind::kPack && made_in_event_ >= 0 && copies_[made_in_event_].stashed)
    let_in(spans_.stash, stash_weight_);
  if (event_.kind == EventKind::kUnpack) look_ahead(event_.id);
  if (event_.kind == EventKind::kRelease) release(event_.id);
}

void SpanListener::on_command(const Command& command, Nanoseconds) {
  if (command.kind == CommandKind::kCopyOut) enter_stash(command);
  if (command.kind == CommandKind::kDrop) drop(command);
  if (command.kind == CommandKind::kCopyIn) copy_in(command);
}

void SpanListener::on_placement(SavedId tensor, const PackDecision& decision) {
  copy_of_[static_cast<std::size_t>(tensor)] = decision.copy;
  if (decision.reason == PlacementReason::kSharedCopy) ++copies_[decision.copy].users;
}

/// A copy that no stash holds is dropped at once; until then it counts as held.
void SpanListener::enter_stash(const Command& command) {
  copies_.push_back({command.bytes});
  made_in_event_ = command.copy;
  stash_weight_ += weight(command.bytes);
}

void SpanListener::leave_stash(CopyId id) {
  Copy& copy = copies_[id];
  if (!copy.stashed) return;
  copy.stashed = false;
  stash_weight_ -= weight(copy.bytes);
}

void SpanListener::not_ahead(CopyId id) {
  if (copies_[id].ahead) ahead_bytes_ -= copies_[id].bytes;
  copies_[id].ahead = false;
}

/// A drop during a save means that the stash had no room: beside its contents, or for this copy at all.
void SpanListener::drop(const Command& command) {
  if (event_.kind == EventKind::kPack) {
    const Bytes wanted = step_.requests()[static_cast<std::size_t>(event_.id)].storage_bytes;
    refuse(spans_.stash, command.copy == made_in_event_ ? weight(wanted) : stash_weight_ + weight(wanted));
  }
  leave_stash(command.copy);
  copies_[command.copy].on_device = false;
}

void SpanListener::copy_in(const Command& command) {
  Copy& copy = copies_[command.copy];
  copied_in_.push_back(static_cast<std::int32_t>(step_.requests()[command.tensor].storage));
  copy.on_device = true;
  if (command.copy == copy_of_[static_cast<std::size_t>(event_.id)]) {  // on demand
    ++asked_copies_in_;
    return;
  }
  copy.ahead = true;
  ahead_bytes_ += copy.bytes;
  let_in(spans_.window, ahead_bytes_);
}

bool SpanListener::is_reloadable(SavedId tensor) const {
  const CopyId id = copy_of_[static_cast<std::size_t>(tensor)];
  return id >= 0 && copies_[id].users > 0 && !copies_[id].on_device;
}

/// Finds the reload that the window refused after this unpack, if any.
void SpanListener::look_ahead(SavedId tensor) {
  const std::int32_t position = order_position_[static_cast<std::size_t>(tensor)];
  if (position >= 0) next_in_order_ = std::max(next_in_order_, static_cast<std::size_t>(position) + 1);
  const auto order = step_.backward_order();
  while (next_in_order_ < order.size() && !is_reloadable(order[next_in_order_])) ++next_in_order_;
  if (next_in_order_ == order.size()) return;
  const CopyId refused = copy_of_[static_cast<std::size_t>(order[next_in_order_])];
  refuse(spans_.window, ahead_bytes_ + copies_[refused].bytes);
}

void SpanListener::release(SavedId tensor) {
  const CopyId id = copy_of_[static_cast<std::size_t>(tensor)];
  if (id < 0 || --copies_[id].users > 0) return;
  leave_stash(id);
  not_ahead(id);
}

}  // namespace offprof

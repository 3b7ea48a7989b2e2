#include "simulator/tuner/settings/sweep_listener.h"

#include <algorithm>
#include <utility>

namespace offprof {

SweepListener::SweepListener(const Step& step)
    : step_(step),
      held_(step.storage_bytes().size(), 0),
      live_bytes_(step.resident_bytes()),
      least_peak_(step.resident_bytes()),
      copy_of_(step.requests().size(), -1) {
  for (const std::int32_t storage : step.residents()) ++held_[storage];
}

void SweepListener::add_live(Bytes bytes) {
  live_bytes_ += bytes;
  least_peak_ = std::max(least_peak_, live_bytes_);
}

void SweepListener::on_allocate(std::int32_t storage, Bytes bytes) {
  const auto programs = static_cast<std::int32_t>(held_.size());
  if (storage >= programs) {
    if (storage - programs >= static_cast<std::int32_t>(added_.size())) added_.resize(storage - programs + 1);
    added_[storage - programs] = {std::exchange(comes_in_, -1), bytes};
    storage = added_[storage - programs].own;
  }
  if (storage < 0 || held_[storage]++ == 0) add_live(bytes);
}

void SweepListener::on_free(std::int32_t storage) {
  const auto programs = static_cast<std::int32_t>(held_.size());
  const bool is_added = storage >= programs;
  const std::int32_t own = is_added ? added_[storage - programs].own : storage;
  if (own < 0)
    live_bytes_ -= added_[storage - programs].bytes;
  else if (--held_[own] == 0)
    live_bytes_ -= step_.storage_bytes()[own];
}

void SweepListener::on_absent(std::int32_t storage) {
  if (--held_[storage] == 0) live_bytes_ -= step_.storage_bytes()[storage];
  least_peak_ = live_bytes_;
}

/// The copy counts as the older storage, like each reload.
void SweepListener::on_carried(const CarriedCopy& copy, std::int32_t storage) {
  comes_in_ = step_.renewals()[copy.renewal].old_storage;
  on_allocate(storage, copy.device_bytes);
}

void SweepListener::on_event(std::size_t index, Nanoseconds) {
  const Event& event = step_.events()[index];
  if (event.kind != EventKind::kUnpack) return;
  const CopyId copy = copy_of_[event.id];
  if (copy < 0 || !is_unasked_[copy]) return;
  is_unasked_[copy] = false;
  ++asked_copies_in_;
}

void SweepListener::on_command(const Command& command, Nanoseconds) {
  if (std::holds_alternative<CopyOut>(command)) ++copies_out_;
  const auto* const copy = std::get_if<CopyIn>(&command);
  if (copy == nullptr) return;
  ++copies_in_;
  comes_in_ = static_cast<std::int32_t>(step_.requests()[copy->tensor].storage);
  is_unasked_[copy->copy] = true;
}

void SweepListener::on_placement(SavedId tensor, const PackDecision& decision) {
  copy_of_[tensor] = decision.copy;
  is_unasked_.resize(std::max(is_unasked_.size(), static_cast<std::size_t>(decision.copy + 1)), false);
}

}  // namespace offprof

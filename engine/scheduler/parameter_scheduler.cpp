#include "engine/scheduler/parameter_scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "traces/base/check.h"

namespace offprof {
namespace {

constexpr std::size_t kNeverAgain = std::numeric_limits<std::size_t>::max();

}  // namespace

ParameterGroupId ParameterScheduler::add(Bytes bytes) {
  groups_.push_back({bytes});
  return static_cast<ParameterGroupId>(groups_.size() - 1);
}

void ParameterScheduler::appear(ParameterGroupId group) {
  OFFPROF_CHECK(!exists(group));
  groups_[group].state = State::kHere;
  groups_[group].changed = true;
  device_bytes_ += groups_[group].bytes;
  trim();
}

void ParameterScheduler::appear_saved(ParameterGroupId group) {
  OFFPROF_CHECK(!exists(group));
  groups_[group].state = State::kAway;
}

void ParameterScheduler::vanish(ParameterGroupId group) {
  Group& gone = groups_[group];
  OFFPROF_CHECK(gone.uses == 0);
  wait(group);
  if (is_on_device(group)) device_bytes_ -= gone.bytes;
  gone.state = State::kGone;
}

void ParameterScheduler::begin_use(std::span<const ParameterGroupUse> uses) {
  for (const ParameterGroupUse& each : uses) use(each);
  try {
    bring(uses);
  } catch (...) {
    abandon_use(uses);
    throw;
  }
}

void ParameterScheduler::bring(std::span<const ParameterGroupUse> uses) {
  ++wanted_;  // groups wanted by the forecast may have to make room for groups in use
  for (const ParameterGroupUse& each : uses)
    if (!is_on_device(each.group)) fetch(each.group);
  // Queue the next prefetches before the compute stream waits, so that the link does not idle.
  fetch_ahead();
  for (const ParameterGroupUse& each : uses) wait(each.group);
}

/// Waits for a group's load. On failure evicts the group without a save: the operator has not changed it.
void ParameterScheduler::wait(ParameterGroupId group) {
  Group& coming = groups_[group];
  if (coming.state != State::kComing) return;
  try {
    executor_.wait(group);
  } catch (...) {
    coming.changed = false;
    evict_here(group);
    throw;
  }
  coming.state = State::kHere;
}

void ParameterScheduler::use(const ParameterGroupUse& use) {
  Group& group = groups_[use.group];
  OFFPROF_CHECK(group.state != State::kGone);
  group.changed = group.changed || use.changes;
  if (group.uses++ > 0) return;
  used_bytes_ += group.bytes;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  used_.push_back(use.group);
  const std::size_t at = next_use(group);
  if (at != kNeverAgain) next_ = at + 1;
}

void ParameterScheduler::end_use(std::span<const ParameterGroupUse> uses) {
  abandon_use(uses);
  trim();
}

void ParameterScheduler::abandon_use(std::span<const ParameterGroupUse> uses) noexcept {
  for (const ParameterGroupUse& each : uses)
    if (--groups_[each.group].uses == 0) used_bytes_ -= groups_[each.group].bytes;
}

void ParameterScheduler::fetch(ParameterGroupId group) {
  make_room(groups_[group].bytes);
  executor_.fetch(group);
  groups_[group].state = State::kComing;
  device_bytes_ += groups_[group].bytes;
}

/// Prefetches groups in the order of the forecast, within the window.
void ParameterScheduler::fetch_ahead() {
  ++wanted_;
  Bytes wanted_bytes = used_bytes_;
  for (std::size_t i = next_; i < forecast_.size(); ++i) {
    Group& group = groups_[forecast_[i]];
    if (group.wanted == wanted_ || group.uses > 0 || group.state == State::kGone) continue;
    wanted_bytes += group.bytes;
    if (wanted_bytes > limit()) return;
    group.wanted = wanted_;
    if (group.state == State::kAway && executor_.is_held(forecast_[i])) fetch(forecast_[i]);
  }
}

/// Evicts until the bytes fit, or until only groups in use or wanted are left.
void ParameterScheduler::make_room(Bytes bytes) {
  while (device_bytes_ + bytes > limit()) {
    const ParameterGroupId group = last_used();
    if (group < 0) return;
    evict(group);
  }
}

/// Returns the group with the farthest next use, among those on the device that are neither in use nor
/// wanted; -1: none.
ParameterGroupId ParameterScheduler::last_used() const {
  ParameterGroupId last = -1;
  std::size_t last_use = 0;
  for (ParameterGroupId id = 0; id < static_cast<ParameterGroupId>(groups_.size()); ++id) {
    const Group& group = groups_[id];
    if (!is_on_device(id) || group.uses > 0 || group.wanted == wanted_) continue;
    const std::size_t use = next_use(group);
    if (last >= 0 && use <= last_use) continue;
    last = id;
    last_use = use;
  }
  return last;
}

std::size_t ParameterScheduler::next_use(const Group& group) const {
  const auto at = std::ranges::lower_bound(group.forecast, next_);
  return at == group.forecast.end() ? kNeverAgain : *at;
}

void ParameterScheduler::evict(ParameterGroupId group) {
  wait(group);
  evict_here(group);
}

void ParameterScheduler::evict_here(ParameterGroupId group) {
  Group& evicted = groups_[group];
  executor_.evict(group, evicted.changed);
  evicted.changed = false;
  evicted.state = State::kAway;
  device_bytes_ -= evicted.bytes;
}

/// Evicts groups beyond the window after an operator has used or made some.
void ParameterScheduler::trim() {
  ++wanted_;  // groups wanted by the forecast may be evicted here
  make_room(0);
}

Bytes ParameterScheduler::limit() const {
  return has_all_ ? std::numeric_limits<Bytes>::max() / 2 : window_bytes_;
}

void ParameterScheduler::bring_all() {
  has_all_ = true;
  for (ParameterGroupId group = 0; group < static_cast<ParameterGroupId>(groups_.size()); ++group)
    if (groups_[group].state == State::kAway) fetch(group);
}

void ParameterScheduler::end_step() {
  OFFPROF_CHECK(used_bytes_ == 0);
  for (ParameterGroupId group = 0; group < static_cast<ParameterGroupId>(groups_.size()); ++group)
    if (is_on_device(group)) evict(group);
  used_before_ = std::exchange(used_, {});
  next_ = 0;
  has_all_ = false;
}

void ParameterScheduler::learn() {
  for (Group& group : groups_) group.forecast.clear();
  forecast_ = used_before_;
  for (std::size_t i = 0; i < forecast_.size(); ++i) groups_[forecast_[i]].forecast.push_back(i);
}

}  // namespace offprof

#include "engine/scheduler/parameter_scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "traces/base/check.h"

namespace offprof {
namespace {

constexpr std::size_t kNeverAgain = std::numeric_limits<std::size_t>::max();

}  // namespace

PageId ParameterScheduler::add(Bytes bytes) {
  pages_.push_back({bytes});
  return static_cast<PageId>(pages_.size() - 1);
}

void ParameterScheduler::appear(PageId page) {
  OFFPROF_CHECK(!exists(page));
  pages_[page].state = State::kHere;
  pages_[page].changed = true;
  device_bytes_ += pages_[page].bytes;
  trim();
}

void ParameterScheduler::appear_saved(PageId page) {
  OFFPROF_CHECK(!exists(page));
  pages_[page].state = State::kAway;
}

void ParameterScheduler::vanish(PageId page) {
  Page& gone = pages_[page];
  OFFPROF_CHECK(gone.uses == 0);
  wait(page);
  if (is_on_device(page)) device_bytes_ -= gone.bytes;
  gone.state = State::kGone;
}

void ParameterScheduler::begin_use(std::span<const PageUse> uses) {
  for (const PageUse& each : uses) use(each);
  try {
    bring(uses);
  } catch (...) {
    abandon_use(uses);
    throw;
  }
}

void ParameterScheduler::bring(std::span<const PageUse> uses) {
  ++wanted_;  // pages wanted by the forecast may have to make room for pages in use
  for (const PageUse& each : uses)
    if (!is_on_device(each.page)) fetch(each.page);
  // Queue the next prefetches before the compute stream waits, so that the link does not idle.
  fetch_ahead();
  for (const PageUse& each : uses) wait(each.page);
}

/// Waits for a page's load. On failure evicts the page without a save: the operator has not changed it.
void ParameterScheduler::wait(PageId page) {
  Page& coming = pages_[page];
  if (coming.state != State::kComing) return;
  try {
    executor_.wait(page);
  } catch (...) {
    coming.changed = false;
    evict_here(page);
    throw;
  }
  coming.state = State::kHere;
}

void ParameterScheduler::use(const PageUse& use) {
  Page& page = pages_[use.page];
  OFFPROF_CHECK(page.state != State::kGone);
  page.changed = page.changed || use.changes;
  if (page.uses++ > 0) return;
  used_bytes_ += page.bytes;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  used_.push_back(use.page);
  const std::size_t at = next_use(page);
  if (at != kNeverAgain) next_ = at + 1;
}

void ParameterScheduler::end_use(std::span<const PageUse> uses) {
  abandon_use(uses);
  trim();
}

void ParameterScheduler::abandon_use(std::span<const PageUse> uses) noexcept {
  for (const PageUse& each : uses)
    if (--pages_[each.page].uses == 0) used_bytes_ -= pages_[each.page].bytes;
}

void ParameterScheduler::fetch(PageId page) {
  make_room(pages_[page].bytes);
  executor_.fetch(page);
  pages_[page].state = State::kComing;
  device_bytes_ += pages_[page].bytes;
}

/// Prefetches pages in the order of the forecast, within the window.
void ParameterScheduler::fetch_ahead() {
  ++wanted_;
  Bytes wanted_bytes = used_bytes_;
  for (std::size_t i = next_; i < forecast_.size(); ++i) {
    Page& page = pages_[forecast_[i]];
    if (page.wanted == wanted_ || page.uses > 0 || page.state == State::kGone) continue;
    wanted_bytes += page.bytes;
    if (wanted_bytes > limit()) return;
    page.wanted = wanted_;
    if (page.state == State::kAway && executor_.is_held(forecast_[i])) fetch(forecast_[i]);
  }
}

/// Evicts until the bytes fit, or until only pages in use or wanted are left.
void ParameterScheduler::make_room(Bytes bytes) {
  while (device_bytes_ + bytes > limit()) {
    const PageId page = last_used();
    if (page < 0) return;
    evict(page);
  }
}

/// Returns the page with the farthest next use, among those on the device that are neither in use nor wanted;
/// -1: none.
PageId ParameterScheduler::last_used() const {
  PageId last = -1;
  std::size_t last_use = 0;
  for (PageId id = 0; id < static_cast<PageId>(pages_.size()); ++id) {
    const Page& page = pages_[id];
    if (!is_on_device(id) || page.uses > 0 || page.wanted == wanted_) continue;
    const std::size_t use = next_use(page);
    if (last >= 0 && use <= last_use) continue;
    last = id;
    last_use = use;
  }
  return last;
}

std::size_t ParameterScheduler::next_use(const Page& page) const {
  const auto at = std::ranges::lower_bound(page.forecast, next_);
  return at == page.forecast.end() ? kNeverAgain : *at;
}

void ParameterScheduler::evict(PageId page) {
  wait(page);
  evict_here(page);
}

void ParameterScheduler::evict_here(PageId page) {
  Page& evicted = pages_[page];
  executor_.evict(page, evicted.changed);
  evicted.changed = false;
  evicted.state = State::kAway;
  device_bytes_ -= evicted.bytes;
}

/// Evicts pages beyond the window after an operator has used or made some.
void ParameterScheduler::trim() {
  ++wanted_;  // pages wanted by the forecast may be evicted here
  make_room(0);
}

Bytes ParameterScheduler::limit() const {
  return has_all_ ? std::numeric_limits<Bytes>::max() / 2 : window_bytes_;
}

void ParameterScheduler::bring_all() {
  has_all_ = true;
  for (PageId page = 0; page < static_cast<PageId>(pages_.size()); ++page)
    if (pages_[page].state == State::kAway) fetch(page);
}

void ParameterScheduler::end_step() {
  OFFPROF_CHECK(used_bytes_ == 0);
  for (PageId page = 0; page < static_cast<PageId>(pages_.size()); ++page)
    if (is_on_device(page)) evict(page);
  used_before_ = std::exchange(used_, {});
  next_ = 0;
  has_all_ = false;
}

void ParameterScheduler::learn() {
  for (Page& page : pages_) page.forecast.clear();
  forecast_ = used_before_;
  for (std::size_t i = 0; i < forecast_.size(); ++i) pages_[forecast_[i]].forecast.push_back(i);
}

}  // namespace offprof

#include "simulator/tuner/settings/setting_sweep.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace offprof {
namespace {

/// Number of boxes per round. It does not depend on the number of threads, so the order of the search is the
/// same on every machine.
constexpr std::size_t kRound = 64;

/// Memory limit for all replays kept paused before backward. If even those of one round would not fit,
/// none is kept.
constexpr Bytes kMostKeptBytes = 128 * kMiB;

std::size_t most_kept(const ReplayTree& tree) {
  const auto most = static_cast<std::size_t>(kMostKeptBytes / tree.standing_bytes());
  return most < 2 * kRound ? 0 : most;
}

std::vector<Bytes> each_once(std::vector<Bytes> sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// Stashes from `first` to `last` bytes.
struct ByteRange {
  Bytes first, last;
};

/// A copy that is too large for a stash in bytes bypasses it. The set of such copies must not change within a
/// range, so a range goes from one size to just below the next. If all copies have one size, stashes in bytes
/// are equivalent to counts.
std::vector<ByteRange> byte_ranges(const std::vector<Bytes>& distinct, Bytes total) {
  std::vector<ByteRange> ranges;
  if (distinct.size() < 2) return ranges;
  for (std::size_t i = 0; i + 1 < distinct.size(); ++i) ranges.push_back({distinct[i], distinct[i + 1] - 1});
  ranges.push_back({distinct.back(), total});
  return ranges;
}

/// Small stashes and windows differ more in their effects than large ones.
std::int64_t geometric_middle(std::int64_t from, std::int64_t to) {
  const double middle = std::sqrt((static_cast<double>(from) + 1) * (static_cast<double>(to) + 1)) - 1;
  return std::clamp(static_cast<std::int64_t>(middle), from, to);
}

}  // namespace

Policy with_setting(Policy base, const Setting& setting) {
  base.stash_count.reset();
  base.stash_bytes.reset();
  if (setting.unit == StashUnit::kCopies)
    base.stash_count = setting.stash;
  else
    base.stash_bytes = setting.stash;
  base.prefetch_bytes = setting.window;
  return base;
}

std::vector<SettingRange> setting_ranges(const Policy& base, const std::vector<Bytes>& sizes) {
  const Bytes total = sum_of(sizes);
  std::vector<SettingRange> ranges = {
      {base, StashUnit::kCopies, 0, static_cast<std::int64_t>(sizes.size()), total}};
  for (const auto& [first, last] : byte_ranges(each_once(sizes), total))
    ranges.push_back({base, StashUnit::kBytes, first, last, total});
  return ranges;
}

double most_settings(const std::vector<Bytes>& sizes) {
  const auto count = static_cast<double>(sizes.size());
  const double in_a_row = count * (count + 1) / 2;
  const bool alike = std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
  const double windows = (alike ? count : in_a_row) + 1;
  const double stashes = count + 1 + (alike ? 0 : in_a_row);
  return windows * stashes;
}

Nanoseconds host_path(const Step& step) {
  std::size_t last = 0;
  for (std::size_t e = 0; e < step.events().size(); ++e) {
    const EventKind kind = step.events()[e].kind;
    if (kind == EventKind::kPack || kind == EventKind::kUnpack) last = e;
  }
  Nanoseconds before = 0;
  Work after;
  for (std::size_t i = 0; i < step.work().size(); ++i) {
    if (i <= last)
      before += step.work()[i].host_ns;
    else
      after = then(after, step.work()[i]);
  }
  return before + std::max(after.host_ns, after.path_ns);
}

LeastTime::LeastTime(const Step& step, const Link& link)
    : is_beside_host_(!step.work().empty()),
      launch_ns_(link.launch_ns),
      host_path_ns_(is_beside_host_ ? host_path(step) : 0) {}

Nanoseconds LeastTime::operator()(Nanoseconds time, const SweepListener& replayed) const {
  if (!is_beside_host_) return time;
  const std::int64_t launches = replayed.copies_out() + replayed.asked_copies_in();
  return std::max(time - replayed.copies_in() * launch_ns_, host_path_ns_ + launches * launch_ns_);
}

Nanoseconds slack_of_waits(const Step& step, std::int64_t copies) {
  const EngineCosts& costs = step.costs();
  const Nanoseconds lost_ns = costs.standstills.empty() ? 0 : costs.standstills.back().lost_ns;
  return copies * (costs.event_ns + 2 * lost_ns);
}

SettingSweep::SettingSweep(const ReplayTree& tree, Frontier& frontier, Limits limits)
    : tree_(tree),
      least_time_(tree.step(), tree.link()),
      frontier_(frontier),
      limits_(limits),
      most_kept_(limits.shares && limits.keeps_forward ? most_kept(tree) : 0) {}

void SettingSweep::add(const SettingRange& range) {
  add({std::make_shared<const Policy>(range.base), range.unit, range.first_stash, range.last_stash,
       range.last_window});
}

/// A stash that holds nothing has the least memory of all, and one that holds everything has the least time.
/// So the corners of the range of counts also show whether the ranges of bytes can matter.
void SettingSweep::add_all(const Policy& base, const std::vector<Bytes>& sizes) {
  add({std::make_shared<const Policy>(base), StashUnit::kCopies, 0, static_cast<std::int64_t>(sizes.size()),
       sum_of(sizes), each_once(sizes)});
}

void SettingSweep::open_byte_ranges(std::size_t range) {
  const Range counts = ranges_[range];
  ranges_[range].unopened.clear();
  for (const auto& [first, last] : byte_ranges(counts.unopened, counts.last_window))
    add({counts.base, StashUnit::kBytes, first, last, counts.last_window});
}

void SettingSweep::add(Range range) {
  Corner low, high;
  low.setting = {range.unit, range.first_stash, 0};
  high.setting = {range.unit, range.last_stash, range.last_window};
  ranges_.push_back(std::move(range));
  waiting_.push_back({ranges_.size() - 1, low, high, false, false, {}});
}

void SettingSweep::run() {
  while (true) {
    while (waiting_.size() < kRound && !boxes_.empty()) {
      const Box box = boxes_.front();
      boxes_.pop_front();
      if (!can_matter(box)) continue;
      if (!ranges_[box.range].unopened.empty()) open_byte_ranges(box.range);
      split(box);
    }
    std::vector<Box> round = take_round();
    if (round.empty()) return;
    replay_corners(round);
    for (const Box& box : round) {
      boxes_.push_back(box);
      if (box.beyond) boxes_.push_back({box.range, box.high, *box.beyond, true, true, {}});
    }
  }
}

std::vector<SettingSweep::Box> SettingSweep::take_round() {
  std::vector<Box> round;
  std::size_t needed = 0;
  while (!waiting_.empty() && round.size() < kRound) {
    const Box& next = waiting_.front();
    needed += (next.has_low ? 0U : 1U) + (next.has_high ? 0U : 1U);
    if (replays_ + needed > limits_.replays) break;
    round.push_back(next);
    waiting_.pop_front();
  }
  return round;
}

void SettingSweep::replay_corners(std::vector<Box>& round) {
  std::vector<Corner*> corners;
  std::vector<ReplayTree::Job> jobs;
  const auto add = [&](const Box& box, Corner& corner) {
    corners.push_back(&corner);
    jobs.push_back({with_setting(*ranges_[box.range].base, corner.setting), corner.forward.lock()});
  };
  for (Box& box : round) {
    if (!std::exchange(box.has_low, true)) add(box, box.low);
    if (!std::exchange(box.has_high, true)) add(box, box.high);
  }
  std::vector<Metrics> metrics(corners.size());
  std::vector<std::shared_ptr<const ReplayTree::Standing>> forwards(corners.size());
  const auto note = [&](std::size_t i, const ReplayTree::Replayed& replayed) {
    metrics[i] = replayed.metrics;
    forwards[i] = replayed.forward;
    corners[i]->least_peak = replayed.listener->least_peak();
    corners[i]->least_time = least_time_(*replayed.metrics.step_time_ns, *replayed.listener);
    const LimitRanges& ranges = *replayed.limit_ranges;
    corners[i]->stashes =
        corners[i]->setting.unit == StashUnit::kCopies ? ranges.stash_count : ranges.stash_bytes;
    corners[i]->windows = ranges.prefetch_bytes;
    corners[i]->forward = replayed.forward;
  };
  effort_ += tree_.replay(jobs,
                          {.listens = true,
                           .shares = limits_.shares,
                           .keeps_forward = most_kept_ > 0,
                           .threads = limits_.threads},
                          note);
  replays_ += corners.size();
  for (std::size_t i = 0; i < corners.size(); ++i) frontier_.add({std::move(jobs[i].policy), metrics[i]});
  keep_for_lines(round);
}

/// Call this while all replays of the round exist.
void SettingSweep::keep_for_lines(const std::vector<Box>& round) {
  for (const Box& box : round) {
    if (!is_line(box) || !can_matter(box)) continue;
    auto forward = box.high.forward.lock();
    if (!forward) forward = box.low.forward.lock();
    if (forward) kept_.push_back(std::move(forward));
  }
  while (kept_.size() > most_kept_) kept_.pop_front();
}

bool SettingSweep::can_matter(const Box& box) const {
  if (limits_.aim && !can_serve(*limits_.aim, box)) return false;
  return !frontier_.reaches(box.low.least_peak, box.high.least_time);
}

bool SettingSweep::can_serve(const Aim& aim, const Box& box) const {
  const Metrics& best = frontier_.best(aim).predicted;
  if (aim.most_peak) {
    const bool is_within = *best.device_peak_bytes <= *aim.most_peak;
    return box.low.least_peak <= *aim.most_peak && !(is_within && box.high.least_time >= *best.step_time_ns);
  }
  const bool is_within = *best.step_time_ns <= *aim.most_time;
  return box.high.least_time <= *aim.most_time &&
         !(is_within && box.low.least_peak >= *best.device_peak_bytes);
}

/// The contents of a stash do not depend on the window, so stashes that are equivalent for one window are
/// equivalent for all. Stashes are distinguished before windows, because that takes the fewest replays.
void SettingSweep::split(const Box& box) {
  if (is_line(box))
    split_line(box);
  else
    split_stash(box);
}

/// Only the window of one stash is left, and one replay serves both halves.
void SettingSweep::split_line(const Box& box) {
  const std::int64_t from = box.low.windows.end, to = box.high.windows.begin;
  if (from >= to) return;  // everything between them equals one of the corners
  Corner middle = box.high;
  middle.setting.window = geometric_middle(from, to);
  if (middle.forward.expired()) middle.forward = box.low.forward;
  queue(box.range, box.low, true, middle, false);
  waiting_.back().beyond = box.high;
}

void SettingSweep::split_stash(const Box& box) {
  const std::int64_t from = box.low.stashes.end, to = box.high.stashes.begin;
  const std::int64_t middle = geometric_middle(from, std::max(from, to));
  Corner below = box.high, above = box.low;
  below.setting.stash = middle - 1;
  above.setting.stash = middle;
  below.forward.reset();
  above.forward.reset();
  queue(box.range, box.low, true, below, false);
  queue(box.range, above, false, box.high, true);
}

void SettingSweep::queue(std::size_t range, const Corner& low, bool has_low, const Corner& high,
                         bool has_high) {
  waiting_.push_back({range, low, high, has_low, has_high, {}});
}

}  // namespace offprof

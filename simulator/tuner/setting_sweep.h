#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/step.h"
#include "simulator/tuner/frontier.h"
#include "simulator/tuner/movable_version.h"
#include "simulator/tuner/replay_tree.h"
#include "simulator/tuner/setting_span.h"
#include "traces/link.h"
#include "traces/policy.h"

namespace offprof {

/// What the forward stash is limited by.
enum class StashUnit { kCopies, kBytes };

/// A stash limit and a prefetch window.
struct Setting {
  StashUnit unit = StashUnit::kCopies;
  std::int64_t stash = 0;
  Bytes window = 0;

  bool operator==(const Setting&) const = default;
};

/// `base` with that setting.
Policy with_setting(Policy base, const Setting& setting);

/// Every stash from `first` to `last` in a unit, and every window from 0 to all that is moved, for one choice
/// of what moves. In each range a larger stash or window never means a lower SpanListener::least_peak nor a
/// longer step (LeastTime), which is what lets a sweep leave settings out; docs/tuning.md says
/// why it is so.
struct SettingRange {
  Policy base;
  StashUnit unit = StashUnit::kCopies;
  std::int64_t first_stash = 0, last_stash = 0;
  Bytes last_window = 0;
};

/// Of a step on a device that computes beside the host: what the host has to do itself up to the last save or
/// request, after which nothing is copied, and what follows at the earliest. Asking for copies comes on top,
/// all of it. What the host waits for between two events is left out: asking for copies may hide there.
Nanoseconds host_path(const Step& step);

/// A time that no smaller stash or window of its range comes below, given what a setting came to; but for
/// slack_of_waits.
///
/// Where the host computes, that is the setting's own step time. Beside a host it can be less: reloads that
/// are asked for later may let the host launch kernels earlier, so what asking for them takes goes off; but
/// all that is copied has to be asked for, and the host has its own work beside.
class LeastTime {
 public:
  LeastTime(const Step& step, const Link& link);
  Nanoseconds operator()(Nanoseconds time, const SpanListener& replayed) const;

 private:
  bool is_beside_host_;
  Nanoseconds launch_ns_;
  Nanoseconds host_path_ns_ = 0;
};

/// By how much a smaller stash can be faster all the same where so many are copied: waiting for a copy out
/// takes time of its own (EngineCosts::event_ns), and with a smaller stash the host comes to the wait
/// earlier, when it may stand for the link anyway.
Nanoseconds slack_of_waits(const Step& step, std::int64_t copies);

/// The ranges that together hold every stash of either unit for `base`, which moves the copies of `sizes`.
std::vector<SettingRange> setting_ranges(const Policy& base, const std::vector<Bytes>& sizes);

/// At most how many settings of one choice of what moves can differ in consequence: stashes of so many copies
/// or of the bytes of so many in a row, windows of the bytes of so many in a row.
double most_settings(const std::vector<Bytes>& sizes);

/// Finds what is on the frontier of whole ranges of settings without replaying each of their settings. It
/// holds boxes of settings of which the two extreme corners have been replayed: the smallest setting has the
/// lowest peak of the box, the largest the shortest step. Where the frontier already reaches both, no setting
/// in between can add to it, and the box is done; else it is halved. Widest boxes go first, so a sweep that
/// is cut short is an even sample.
class SettingSweep {
 public:
  struct Limits {
    std::size_t replays = 0;  ///< no more than these
    /// What is looked for is the best for that aim: settings beyond its limit do not matter, nor, once there
    /// is one within it, such as are no better. Without an aim it is the whole frontier.
    std::optional<Aim> aim{};
    unsigned threads = 0;
    bool shares = true;  ///< see ReplayTree::Options
    /// Whether replays that stand before backward are kept for the other windows of later rounds. That pays
    /// where most of what is replayed are windows.
    bool keeps_forward = false;
  };

  /// `tree` and `frontier` must outlive it; what it replays goes into `frontier`.
  SettingSweep(const ReplayTree& tree, Frontier& frontier, Limits limits);

  void add(const SettingRange& range);
  /// Every stash of either unit and every window: what setting_ranges lists, but the ranges of bytes are
  /// looked at only where that of counts cannot be left out as a whole.
  void add_all(const Policy& base, const std::vector<Bytes>& sizes);
  /// Goes on until nothing is left or the replays are spent. The result does not depend on the threads.
  void run();

  std::size_t replays() const { return replays_; }
  const ReplayEffort& effort() const { return effort_; }
  /// Whether nothing was left out that could be on the frontier.
  bool is_complete() const { return waiting_.empty() && boxes_.empty(); }

 private:
  /// As SettingRange has it. Ranges of one choice of what moves share its policy.
  struct Range {
    std::shared_ptr<const Policy> base;
    StashUnit unit = StashUnit::kCopies;
    std::int64_t first_stash = 0, last_stash = 0;
    Bytes last_window = 0;
    std::vector<Bytes> unopened{};  ///< sizes, each once: of ranges of bytes that are not looked at yet
  };
  struct Corner {
    Setting setting;
    Bytes least_peak = 0;        ///< SpanListener::least_peak: that of larger settings is no lower
    Nanoseconds least_time = 0;  ///< that of smaller settings is no shorter
    SettingSpans spans;
    /// A replay with its stash that stands before backward, as long as it is kept: for other windows.
    std::weak_ptr<const ReplayTree::Standing> forward{};
  };
  struct Box {
    std::size_t range = 0;
    Corner low, high;
    bool has_low = true, has_high = true;  ///< whether the corner has been replayed
    std::optional<Corner> beyond;  ///< once `high` has been: the upper corner of a second box above it
  };

  /// Nothing but the window is left to be told apart.
  static bool is_line(const Box& box) { return box.low.spans.stash.end > box.high.setting.stash; }
  bool can_matter(const Box& box) const;
  bool can_serve(const Aim& aim, const Box& box) const;
  void add(Range range);
  void open_byte_ranges(std::size_t range);
  void split(const Box& box);
  void split_line(const Box& box);
  void split_stash(const Box& box);
  void queue(std::size_t range, const Corner& low, bool has_low, const Corner& high, bool has_high);
  std::vector<Box> take_round();
  void replay_corners(std::vector<Box>& round);
  void keep_for_lines(const std::vector<Box>& round);

  const ReplayTree& tree_;
  LeastTime least_time_;
  Frontier& frontier_;
  Limits limits_;
  std::vector<Range> ranges_;
  std::deque<Box> waiting_;  ///< some corner of it is to be replayed
  std::deque<Box> boxes_;    ///< to be looked at
  std::size_t most_kept_;    ///< how many replays that stand before backward are kept
  std::deque<std::shared_ptr<const ReplayTree::Standing>> kept_;  ///< oldest first
  std::size_t replays_ = 0;
  ReplayEffort effort_;
};

}  // namespace offprof

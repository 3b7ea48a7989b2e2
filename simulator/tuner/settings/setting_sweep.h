#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/replay/step.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/settings/movable_version.h"
#include "simulator/tuner/settings/replay_tree.h"
#include "simulator/tuner/settings/sweep_listener.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"

namespace offprof {

/// Unit of the forward stash's limit.
enum class StashUnit { kCopies, kBytes };

/// A stash limit and a prefetch window.
struct Setting {
  StashUnit unit = StashUnit::kCopies;
  std::int64_t stash = 0;
  Bytes window = 0;

  bool operator==(const Setting&) const = default;
};

/// Returns `base` with that setting.
Policy with_setting(Policy base, const Setting& setting);

/// All stashes from `first` to `last` in one unit, and all windows from 0 to the sum of all moved bytes, for
/// one set of moved tensors. Within a range, a larger stash or window never has a lower
/// SweepListener::least_peak or a longer step (LeastTime). That allows a sweep to leave settings out;
/// docs/internals/tuner.md explains why it holds.
struct SettingRange {
  Policy base;
  StashUnit unit = StashUnit::kCopies;
  std::int64_t first_stash = 0, last_stash = 0;
  Bytes last_window = 0;
};

/// Returns the host's own work in a step on a device that computes beside the host. It counts the work up to
/// the last save or unpack, after which nothing is copied, and adds the least time of what follows. All
/// requests for copies come on top of it. The host's waits between two events are left out, because requests
/// may hide there.
Nanoseconds host_path(const Step& step);

/// Lower bound on the step times of smaller stashes and windows of a range, given the result of one setting;
/// it holds up to slack_of_waits.
///
/// If the host computes, the bound is the setting's own step time. Beside a host it can be lower: reloads
/// that are requested later may let the host launch kernels earlier, so the time of their requests is
/// subtracted. But every copy must be requested, in addition to the host's own work.
class LeastTime {
 public:
  LeastTime(const Step& step, const Link& link);
  Nanoseconds operator()(Nanoseconds time, const SweepListener& replayed) const;

 private:
  bool is_beside_host_;
  Nanoseconds launch_ns_;
  Nanoseconds host_path_ns_ = 0;
};

/// Upper bound on how much faster a smaller stash or window can be, for `copies` copies. A wait for a copy
/// out takes time of its own (EngineCosts::event_ns). With a smaller stash the host comes to the wait
/// earlier, when it may have to wait for the link anyway. And compute loses time after a stall
/// (EngineCosts::standstills), of which each copy may cause two: with a larger stash or window compute may be
/// further ahead when it comes to a wait, and loses more after the longer stall.
Nanoseconds slack_of_waits(const Step& step, std::int64_t copies);

/// Returns the ranges that together hold every stash of either unit for `base`, which moves copies of
/// `sizes`.
std::vector<SettingRange> setting_ranges(const Policy& base, const std::vector<Bytes>& sizes);

/// Upper bound on the number of settings with different effects for one set of moved tensors. Stashes differ
/// by a number of copies or by the bytes of several consecutive copies, windows by the bytes of several
/// consecutive copies.
double most_settings(const std::vector<Bytes>& sizes);

/// Finds the Pareto frontier of whole ranges of settings without a replay of each setting. It holds boxes of
/// settings whose two extreme corners have been replayed: the smallest setting has the lowest peak of the
/// box, the largest has the shortest step. If the frontier already reaches both, no setting between them can
/// add to it, and the box is done; otherwise it is halved. Boxes are processed first in, first out, so wide
/// ones come first, and a sweep that is cut short is an even sample.
class SettingSweep {
 public:
  struct Limits {
    std::size_t replays = 0;  ///< upper bound on the replays
    /// The sweep looks for the best policy for this aim: it skips settings beyond the aim's limit and, once a
    /// policy within the limit is known, settings that are no better. Without an aim it looks for the whole
    /// frontier.
    std::optional<Aim> aim{};
    unsigned threads = 0;
    bool shares = true;  ///< see ReplayTree::Options
    /// True: replays stopped before backward are kept for the other windows of later rounds. That pays off if
    /// most replays differ in their windows.
    bool keeps_forward = false;
  };

  /// `tree` and `frontier` must outlive it; the replayed policies go into `frontier`.
  SettingSweep(const ReplayTree& tree, Frontier& frontier, Limits limits);

  void add(const SettingRange& range);
  /// Adds every stash of either unit and every window, like setting_ranges. Ranges of bytes are examined only
  /// if the range of counts cannot be ruled out as a whole.
  void add_all(const Policy& base, const std::vector<Bytes>& sizes);
  /// Runs until nothing is left or the replays are spent. The result does not depend on the number of
  /// threads.
  void run();

  std::size_t replays() const { return replays_; }
  const ReplayEffort& effort() const { return effort_; }
  /// Returns true if nothing was left out that could be on the frontier.
  bool is_complete() const { return waiting_.empty() && boxes_.empty(); }

 private:
  /// Same as SettingRange, but ranges for one set of moved tensors share its policy.
  struct Range {
    std::shared_ptr<const Policy> base;
    StashUnit unit = StashUnit::kCopies;
    std::int64_t first_stash = 0, last_stash = 0;
    Bytes last_window = 0;
    /// Distinct sizes, whose ranges of bytes have not been examined yet.
    std::vector<Bytes> unopened{};
  };
  struct Corner {
    Setting setting;
    Bytes least_peak = 0;        ///< SweepListener::least_peak; it is no lower for larger settings
    Nanoseconds least_time = 0;  ///< no shorter for smaller settings
    /// The stashes and windows with the same effects, each with the other limit as it is.
    LimitRange stashes, windows;
    /// A replay with the same stash, paused before backward, while it is kept: for other windows.
    std::weak_ptr<const ReplayTree::Standing> forward{};
  };
  struct Box {
    std::size_t range = 0;
    Corner low, high;
    bool has_low = true, has_high = true;  ///< true if the corner has been replayed
    /// Once `high` has been replayed: the upper corner of a second box above this one.
    std::optional<Corner> beyond;
  };

  /// Returns true if the stashes of the box are equivalent, so that only windows differ.
  static bool is_line(const Box& box) { return box.low.stashes.end > box.high.setting.stash; }
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
  std::deque<Box> waiting_;  ///< boxes with a corner that must be replayed
  std::deque<Box> boxes_;    ///< boxes to examine
  std::size_t most_kept_;    ///< how many replays stopped before backward are kept
  std::deque<std::shared_ptr<const ReplayTree::Standing>> kept_;  ///< oldest first
  std::size_t replays_ = 0;
  ReplayEffort effort_;
};

}  // namespace offprof

#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"
#include "simulator/tuner/settings/sweep_listener.h"
#include "traces/base/units.h"
#include "traces/model/link.h"
#include "traces/model/metrics.h"
#include "traces/model/policy.h"

namespace offprof {

/// Effort of replaying, counted in events, summed over the threads.
struct ReplayEffort {
  std::size_t events = 0;        ///< events that were replayed
  std::size_t whole_events = 0;  ///< events of the same replays if each had begun at the start of the step
  std::size_t standing = 0;      ///< most replays that one thread had in progress at a time

  ReplayEffort& operator+=(const ReplayEffort& other) {
    events += other.events;
    whole_events += other.whole_events;
    standing = std::max(standing, other.standing);
    return *this;
  }
};

/// Replays many policies of one step. Events that several policies share at the beginning of the step are
/// replayed once: the replay is forked before the event on which the policies no longer agree
/// (PartialReplay::agrees), so the replays form a tree. Every policy's result equals that of a separate
/// replay.
class ReplayTree {
 public:
  struct Options {
    bool listens = false;        ///< true: a SweepListener hears each replay
    bool shares = true;          ///< false: every policy is replayed separately, for comparison
    bool keeps_forward = false;  ///< true: Replayed::forward is wanted
    unsigned threads = 0;        ///< 0: one per core; neither results nor effort depend on it
    /// Memory limit of the paused replays, over all threads. Policies share replays as far as this allows.
    /// There is always at least one thread, and one replay per thread.
    Bytes most_bytes = 512 * kMiB;
  };
  /// A replay in progress and its listener, which is nullptr unless Options::listens.
  struct Standing {
    std::unique_ptr<SweepListener> listener;
    PartialReplay replay;
  };
  /// Result of one policy.
  struct Replayed {
    const Metrics& metrics;
    std::optional<LimitRanges> limit_ranges;  ///< see PartialReplay::limit_ranges
    const SweepListener* listener;            ///< nullptr unless Options::listens
    /// The replay before backward's first unpack, from which replays with other windows can continue.
    std::shared_ptr<const Standing> forward{};
  };
  struct Job {
    Policy policy;
    /// nullptr, or where to begin: a replay with the same decisions as this policy up to there. It has a
    /// listener if Options::listens.
    std::shared_ptr<const Standing> start{};
  };
  /// Receives the result of job number `index`. Called once for each job, from several threads.
  using Done = std::function<void(std::size_t index, const Replayed& replayed)>;

  /// `step` must outlive it.
  ReplayTree(const Step& step, const Link& link);

  const Step& step() const { return step_; }
  const Link& link() const { return link_; }

  /// Returns the approximate memory of one replay in progress; an upper bound except for its plan.
  Bytes standing_bytes() const { return standing_bytes_; }

  /// Returns the number of threads whose replays fit the memory limit: at most the number in the options.
  unsigned threads(const Options& options) const;

  /// Replays the jobs and returns the effort.
  ReplayEffort replay(std::span<const Job> jobs, const Options& options, const Done& done) const;

 private:
  class Branch;

  std::size_t most_standing(const Options& options) const;

  const Step& step_;
  Link link_;
  std::size_t first_unpack_;  ///< index of the event; the number of events if there is none
  Bytes standing_bytes_;
};

}  // namespace offprof

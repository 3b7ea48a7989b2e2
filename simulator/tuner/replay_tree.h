#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "simulator/replay.h"
#include "simulator/step.h"
#include "simulator/tuner/divergence.h"
#include "simulator/tuner/setting_span.h"
#include "traces/link.h"
#include "traces/metrics.h"
#include "traces/policy.h"
#include "traces/units.h"

namespace offprof {

/// How much replaying took, counted in events, each of which a thread replayed.
struct ReplayEffort {
  std::size_t events = 0;        ///< that were replayed
  std::size_t whole_events = 0;  ///< of the replays, had each begun at the step's beginning
  std::size_t standing = 0;      ///< replays that a thread had under way at a time, at most

  ReplayEffort& operator+=(const ReplayEffort& other) {
    events += other.events;
    whole_events += other.whole_events;
    standing = std::max(standing, other.standing);
    return *this;
  }
};

/// Replays many policies of one step. What several of them have in common at the step's beginning is replayed
/// once: the replay is forked where they part, which makes a tree of it. Every policy comes to what a replay
/// of its own comes to.
class ReplayTree {
 public:
  struct Options {
    bool notes_spans = false;    ///< whether a SpanListener hears each replay
    bool shares = true;          ///< false: every policy is replayed on its own, for comparison
    bool keeps_forward = false;  ///< whether Replayed::forward is wanted
    unsigned threads = 0;        ///< 0: one a core; neither results nor effort depend on it
    /// What replays that stand and wait may take, over all threads. As much as that leaves room for is
    /// shared; one replay a thread there always is, and one thread.
    Bytes most_bytes = 512 * kMiB;
  };
  /// A replay on its way, and what hears it: nullptr unless spans are noted.
  struct Standing {
    std::unique_ptr<SpanListener> listener;
    PartialReplay replay;
  };
  /// What a policy came to.
  struct Replayed {
    const Metrics& metrics;
    const SpanListener* listener;  ///< nullptr unless spans are noted
    /// The replay before the first request of backward, from which those of other windows can go on.
    std::shared_ptr<const Standing> forward{};
  };
  struct Job {
    Policy policy;
    /// nullptr, or where to begin: a replay that decided as this policy does. It has a listener where spans
    /// are noted.
    std::shared_ptr<const Standing> start{};
  };
  /// Is told what job number `index` came to, of each once, by several threads.
  using Done = std::function<void(std::size_t index, const Replayed& replayed)>;

  /// `step` must outlive it.
  ReplayTree(const Step& step, const Link& link);

  const Step& step() const { return step_; }
  const Link& link() const { return link_; }

  /// What a replay that stands takes, about; at most, but for its plan.
  Bytes standing_bytes() const { return standing_bytes_; }

  /// How many threads what it replays has room for: at most as many as the options say.
  unsigned threads(const Options& options) const;

  /// What it took is returned.
  ReplayEffort replay(std::span<const Job> jobs, const Options& options, const Done& done) const;

 private:
  class Branch;

  std::size_t most_standing(const Options& options) const;

  const Step& step_;
  Link link_;
  Divergence divergence_;
  Bytes standing_bytes_;
};

}  // namespace offprof

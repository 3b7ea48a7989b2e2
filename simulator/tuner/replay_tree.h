#pragma once

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

namespace offprof {

/// How much replaying took, counted in events, each of which a thread replayed.
struct ReplayEffort {
  std::size_t events = 0;        ///< that were replayed
  std::size_t whole_events = 0;  ///< of the replays, had each begun at the step's beginning

  ReplayEffort& operator+=(const ReplayEffort& other) {
    events += other.events;
    whole_events += other.whole_events;
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

  /// What it took is returned.
  ReplayEffort replay(std::span<const Job> jobs, const Options& options, const Done& done) const;

 private:
  class Branch;

  const Step& step_;
  Link link_;
  Divergence divergence_;
};

}  // namespace offprof

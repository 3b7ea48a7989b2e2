#pragma once

#include <cstddef>
#include <vector>

#include "simulator/step.h"
#include "simulator/tuner/frontier.h"
#include "simulator/tuner/movable_version.h"
#include "simulator/tuner/replay_tree.h"
#include "simulator/tuner/setting_sweep.h"
#include "traces/link.h"
#include "traces/policy.h"

namespace offprof {

/// Looks for plans: sets of storage versions to move, each with a stash and a window. Every plan is replayed,
/// and what is found goes into a frontier; so a plan is never said to do better than it does.
class PlanSearch {
 public:
  struct Limits {
    std::size_t replays = 0;
    /// With at most so many versions every set of them is gone through, with every setting.
    std::size_t exhaustive_versions = 14;
    unsigned threads = 0;
    bool shares = true;  ///< see ReplayTree::Options
  };

  /// `base`: what every plan has beside tensors and setting. All that is passed must outlive the search;
  /// `frontier` has at least one candidate.
  PlanSearch(const Step& step, const Link& link, const std::vector<MovableVersion>& versions, Policy base,
             Frontier& frontier, const Limits& limits);

  /// `shares`: by version, how far a relaxation moves it; those near 0 or 1 are tried last to be changed.
  void run(const Aim& aim, const std::vector<double>& shares);

  std::size_t replays() const { return replays_; }
  const ReplayEffort& effort() const { return effort_; }
  /// Whether `run` went through all plans, so that none is better than the frontier's best for its aim.
  bool is_exhaustive() const { return is_exhaustive_; }

 private:
  using Choice = std::vector<char>;  ///< by version: whether it moves
  struct Plan {
    Choice moved;
    Setting setting;
  };

  void go_through_all();
  void try_roundings(const std::vector<double>& shares);
  void improve(const std::vector<double>& shares);
  bool flip_pieces(std::size_t size, const std::vector<double>& shares);
  bool try_swaps(const std::vector<double>& shares);
  bool sweep_settings();
  bool sweep_neighbours();
  SettingSweep settings_sweep(std::size_t replays);
  void add_settings(SettingSweep& sweep, const Plan& plan) const;
  void run(SettingSweep& sweep);
  bool nudge_setting();

  /// Replays them all, or as many as may still be. Whether the best for the aim got better.
  bool replay_all(const std::vector<Plan>& plans);
  std::vector<std::size_t> in_order_of_doubt(const Plan& plan, const std::vector<double>& shares) const;
  bool beats(const Candidate& a, const Candidate& b) const;
  Policy policy_of(const Plan& plan) const;
  Plan plan_of(const Policy& policy) const;
  std::vector<Bytes> sizes_of(const Choice& moved) const;
  std::size_t replays_left() const { return limits_.replays - std::min(limits_.replays, replays_); }

  ReplayTree tree_;
  const std::vector<MovableVersion>& versions_;
  Policy base_;
  Frontier& frontier_;
  Limits limits_;
  Aim aim_;
  std::size_t replays_ = 0;
  ReplayEffort effort_;
  bool is_exhaustive_ = false;
  std::vector<Candidate> last_;  ///< what the last replay_all came to
};

}  // namespace offprof

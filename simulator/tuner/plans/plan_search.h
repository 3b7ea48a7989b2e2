#pragma once

#include <cstddef>
#include <vector>

#include "simulator/replay/step.h"
#include "simulator/tuner/plans/plan_sets.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/settings/movable_version.h"
#include "simulator/tuner/settings/replay_tree.h"
#include "simulator/tuner/settings/setting_sweep.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"

namespace offprof {

/// Searches for plans: sets of storage versions to move, each with a stash and a window. Every plan is
/// replayed, and the result goes into a Pareto frontier, so no plan is credited with more than it achieves.
class PlanSearch {
 public:
  using Choice = std::vector<char>;  ///< by version: 1 if it moves
  struct Plan {
    Choice moved;
    Setting setting;
  };
  struct Limits {
    std::size_t replays = 0;
    /// With at most this many versions all their sets are tried, with every setting, as far as the replays
    /// suffice.
    std::size_t exhaustive_versions = 14;
    /// Number of calls of `run`: each gets an equal part of the replays that the earlier calls left.
    std::size_t runs = 1;
    /// True: `run` ends with all sets of few versions.
    bool tries_all = true;
    unsigned threads = 0;
    bool shares = true;  ///< see ReplayTree::Options
  };

  /// `base` gives the fields of every plan other than tensors and setting. All arguments must outlive the
  /// search. `frontier` must have at least one candidate.
  PlanSearch(const Step& step, const Link& link, const std::vector<MovableVersion>& versions, Policy base,
             Frontier& frontier, const Limits& limits);

  /// Searches for the best plan for `aim`. `shares`: by version, the share that a relaxation moves; versions
  /// with a share near 0 or 1 are changed last.
  void run(const Aim& aim, const std::vector<double>& shares);

  /// Replays the plans, as far as the replays suffice, and returns their results in the same order.
  std::vector<Candidate> try_plans(const std::vector<Plan>& plans);

  /// Tries all sets of few versions, with every setting, for the whole frontier. Spends all replays that are
  /// left. `shares` as in `run`; the most similar sets are tried first.
  void run_whole(const std::vector<double>& shares);

  /// Replays plans between those of two candidates: their moved versions are exchanged one after the other.
  /// Fills the frontier between them. At most `most` plans.
  void bridge(const Candidate& from, const Candidate& to, std::size_t most);

  std::size_t replays() const { return replays_; }
  const ReplayEffort& effort() const { return effort_; }
  /// Returns true if the last `run` or `run_whole` covered all plans. Then none is better than the frontier's
  /// best for its aim, provided that a larger stash or window never makes a step longer (SettingRange).
  bool is_exhaustive() const { return is_exhaustive_; }

 private:
  void go_through_all(const std::vector<double>& shares);
  void try_roundings(const std::vector<double>& shares);
  void improve(const std::vector<double>& shares);
  bool flip_pieces(std::size_t size, const std::vector<double>& shares);
  bool try_swaps(const std::vector<double>& shares);
  bool sweep_settings();
  bool sweep_neighbours(const std::vector<double>& shares);
  std::vector<Plan> neighbours(const std::vector<double>& shares, std::size_t most) const;
  SettingSweep settings_sweep(std::size_t replays);
  void add_settings(SettingSweep& sweep, const Plan& plan) const;
  void run(SettingSweep& sweep);
  void note(const SettingSweep& sweep);
  bool nudge_setting();

  /// Replays the plans, or as many as the remaining replays allow. Returns true if the best for the aim
  /// improved.
  bool replay_all(const std::vector<Plan>& plans);
  std::vector<std::size_t> in_order_of_doubt(const Plan& plan, const std::vector<double>& shares) const;
  bool can_serve(Bytes least_peak) const;
  bool beats(const Candidate& a, const Candidate& b) const;
  Plan plan_that_moves(PlanSets::Set set) const;
  Policy policy_of(const Plan& plan) const;
  Plan plan_of(const Policy& policy) const;
  std::vector<Bytes> sizes_of(const Choice& moved) const;
  std::size_t replays_left() const { return may_replay_ - std::min(may_replay_, replays_); }
  std::size_t most_plans() const;

  ReplayTree tree_;
  const std::vector<MovableVersion>& versions_;
  Policy base_;
  Frontier& frontier_;
  Nanoseconds keep_time_ = 0;  ///< step time with nothing moved; no plan is faster
  Limits limits_;
  Aim aim_;
  std::size_t replays_ = 0, may_replay_ = 0;
  std::size_t runs_ = 0;
  ReplayEffort effort_;
  bool is_exhaustive_ = false;
  std::vector<Candidate> last_;  ///< results of the last replay_all
};

}  // namespace offprof

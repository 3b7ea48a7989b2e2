#include "simulator/tuner/plan_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/tuner/mixture.h"
#include "simulator/tuner/pace_search.h"
#include "simulator/tuner/plans/plan_bound.h"
#include "simulator/tuner/plans/plan_search.h"
#include "simulator/tuner/settings/family_search.h"

namespace offprof {
namespace {

constexpr std::size_t kPlanEvents = 75'000'000;
/// A search of all plans may take longer.
constexpr std::size_t kFewPlanEvents = 400'000'000, kMostExhaustiveReplays = 1'000'000;
/// Budgets for which plans are searched, and one part in this many of their number for which the relaxation
/// is solved.
constexpr std::size_t kRungs = 24, kRungsPerRelaxation = 4;
/// Sets of recomputed groups that are searched. More groups are recomputed all at once.
constexpr std::size_t kMostMixtures = 12;
/// A group with less than one part in this many of the bytes is not recomputed.
constexpr Bytes kLeastGroup = 100;
/// Parts of the replays: for the first look at each set of recomputed groups, for paced plans, and for plans
/// between two neighbours of a frontier.
constexpr std::size_t kLookShare = 8, kPaceShare = 2, kBridgeShare = 8;

/// Returns the replays of the whole stage.
std::size_t replays_of_stage(const TuneInputs& inputs) {
  return inputs.replays_of(kPlanEvents);
}

/// Returns mixtures that recompute more and more groups, those with the least time per byte first. The first
/// one recomputes nothing. Groups with a small share of the bytes are left out.
std::deque<Mixture> mixtures_of(const TuneInputs& inputs, const PlanSpace& space, std::size_t runners_up) {
  std::vector<RecomputeGroup> groups = recompute_groups(inputs.steps.program(inputs.base), space.versions);
  Bytes total = 0;
  for (const RecomputeGroup& group : groups) total += group.bytes;
  std::erase_if(groups, [&](const RecomputeGroup& group) { return group.bytes < total / kLeastGroup; });
  std::deque<Mixture> mixtures;
  for (std::size_t i = 0; i <= std::min(groups.size(), kMostMixtures); ++i) {
    const std::size_t count = i < kMostMixtures ? i : groups.size();
    const std::vector<RecomputeGroup> taken(groups.begin(),
                                            groups.begin() + static_cast<std::ptrdiff_t>(count));
    Mixture& mixture =
        mixtures.emplace_back(Mixture{inputs.base, without_recomputed(space, taken), Frontier(runners_up)});
    for (const RecomputeGroup& group : taken) mixture.base.rules.push_back(group.rule);
  }
  return mixtures;
}

/// Returns the policy as a plan, so that a tensor that cannot be recomputed moves if the plan names it.
Policy planned(const Policy& base, const std::vector<MovableVersion>& versions) {
  Policy policy = base;
  policy.tensors.emplace();
  for (const MovableVersion& version : versions)
    policy.tensors->insert(policy.tensors->end(), version.tensors.begin(), version.tensors.end());
  std::ranges::sort(*policy.tensors);
  return policy;
}

/// Searches the ladder of budgets.
class LadderSearch {
 public:
  LadderSearch(const TuneInputs& inputs, const PlanSpace& space, Frontier& peaks,
               const StageProgress& progress)
      : inputs_(inputs),
        space_(space),
        peaks_(peaks),
        progress_(progress),
        mixtures_(mixtures_of(inputs, space, peaks.most_runners_up())),
        may_replay_(replays_of_stage(inputs)) {}

  PlanStageResult search(bool goes_by_facts) {
    result_.summary.versions = space_.versions.size();
    result_.summary.mixtures = mixtures_.size() - 1;
    look_at_mixtures();
    try_paces();
    const std::vector<Bytes> rungs = ladder();
    for (std::size_t i = 0; i < rungs.size(); ++i) climb(rungs, i);
    for (Mixture& mixture : mixtures_) build_bridges(mixture);
    const bool is_whole = space_.versions.empty() || try_all_plans();
    for (const Mixture& mixture : mixtures_) merge(mixture.peaks);
    result_.summary.is_whole = is_whole;
    result_.summary.is_exhaustive = is_whole && goes_by_facts && mixtures_.size() == 1;
    return result_;
  }

 private:
  /// Replays a coarse grid of settings for each mixture. Plans without recomputation begin with all known
  /// candidates.
  void look_at_mixtures() {
    for (const Candidate& candidate : peaks_.candidates()) mixtures_.front().peaks.add(candidate);
    const std::size_t most = std::max<std::size_t>(may_replay_ / kLookShare / mixtures_.size(), 1);
    for (std::size_t i = 1; i < mixtures_.size(); ++i) {
      Mixture& mixture = mixtures_[i];
      std::vector<Policy> policies;
      if (!mixture.space.versions.empty())
        policies = coarse_grid(mixture.space.versions, planned(mixture.base, mixture.space.versions), most);
      Policy& moves_nothing = policies.emplace_back(mixture.base);
      moves_nothing.threshold_bytes = 0;
      moves_nothing.tensors.emplace();
      replay_all(policies, mixture.peaks);
    }
  }

  /// First without recomputation, as if there was none: to know what can be recomputed must not make the
  /// answer worse.
  void try_paces() {
    progress_("searching plans that keep the link busy");
    try_paces(1);
    if (mixtures_.size() > 1) try_paces(mixtures_.size());
  }

  void try_paces(std::size_t mixtures) {
    PaceSearchResult found = search_paces(inputs_, mixtures_, mixtures, may_replay_ / kPaceShare);
    std::ranges::move(found.followed, std::back_inserter(result_.followed));
    result_.summary.replayed += found.replayed;
    result_.effort += found.effort;
  }

  void replay_all(const std::vector<Policy>& policies, Frontier& peaks) {
    std::vector<ReplayTree::Job> jobs;
    for (const Policy& policy : policies) jobs.push_back({policy});
    std::vector<Candidate> candidates(policies.size());
    result_.effort +=
        inputs_.tree.replay(jobs, {.shares = inputs_.goal.shares_replays, .threads = inputs_.goal.threads},
                            [&](std::size_t i, const ReplayTree::Replayed& replayed) {
                              candidates[i] = {policies[i], replayed.metrics};
                            });
    result_.summary.replayed += policies.size();
    for (const Candidate& candidate : candidates) peaks.add(candidate);
  }

  /// Returns budgets spread evenly from the lowest known peak to the highest, highest first. They depend on
  /// the step alone.
  std::vector<Bytes> ladder() const {
    Bytes least = peak_of(mixtures_.front().peaks.candidates().front());
    const Bytes most = peak_of(mixtures_.front().peaks.candidates().back());
    for (const Mixture& mixture : mixtures_)
      least = std::min(least, peak_of(mixture.peaks.candidates().front()));
    std::vector<Bytes> rungs;
    for (std::size_t i = 0; i < kRungs; ++i) {
      const Bytes rung = most - (most - least) / static_cast<Bytes>(kRungs) * static_cast<Bytes>(i + 1);
      if (rungs.empty() || rung < rungs.back()) rungs.push_back(rung);
    }
    return rungs;
  }

  static Bytes peak_of(const Candidate& candidate) { return *candidate.predicted.device_peak_bytes; }

  /// Returns the mixture whose best candidate for the budget is the best.
  Mixture& best_mixture(const Aim& aim) {
    const auto key = [&](const Mixture& mixture) {
      const Candidate& best = mixture.peaks.best(aim);
      return std::pair(std::max<Bytes>(0, peak_of(best) - *aim.most_peak), *best.predicted.step_time_ns);
    };
    return *std::ranges::min_element(mixtures_, {}, key);
  }

  /// Searches plans for one budget, in the mixture that serves it best so far.
  void climb(const std::vector<Bytes>& rungs, std::size_t rung) {
    if (space_.versions.empty()) return;
    const Aim aim{rungs[rung], {}};
    progress_(fmt::format("searching plans for {} ({} of {} budgets)", format_bytes(rungs[rung]), rung + 1,
                          rungs.size()));
    Mixture& mixture = best_mixture(aim);
    if (mixture.space.versions.empty()) return;
    if (rung % kRungsPerRelaxation == 0 || relaxed_ != &mixture) relax(mixture, aim);
    const std::size_t replays = may_climb() / rungs.size();
    PlanSearch search = search_of(mixture, replays);
    search.run(aim, shares_);
    note(search);
  }

  std::size_t may_climb() const {
    return may_replay_ - may_replay_ / kBridgeShare - may_replay_ / kPaceShare;
  }

  void relax(const Mixture& mixture, const Aim& aim) {
    const PlanRelaxation relaxation(inputs_.step, inputs_.link, mixture.space.versions, mixture.space.least,
                                    inputs_.goal.host_memory_bytes);
    shares_ = relaxation.least_time(*aim.most_peak, *mixture.peaks.best(aim).predicted.step_time_ns).moved;
    relaxed_ = &mixture;
  }

  PlanSearch search_of(Mixture& mixture, std::size_t replays, bool tries_all = false) const {
    return {inputs_.step,
            inputs_.link,
            mixture.space.versions,
            mixture.base,
            mixture.peaks,
            {.replays = replays,
             .tries_all = tries_all,
             .threads = inputs_.goal.threads,
             .shares = inputs_.goal.shares_replays}};
  }

  /// Replays plans between neighbours of the frontier whose peaks lie far apart.
  void build_bridges(Mixture& mixture) {
    if (mixture.space.versions.empty()) return;
    const std::vector<Candidate> ends = mixture.peaks.candidates();
    const std::size_t replays = may_replay_ / kBridgeShare / mixtures_.size();
    const Bytes whole = peak_of(ends.back()) - peak_of(ends.front());
    if (whole <= 0) return;
    PlanSearch search = search_of(mixture, replays);
    for (std::size_t i = 1; i < ends.size(); ++i) {
      const auto part =
          static_cast<double>(peak_of(ends[i]) - peak_of(ends[i - 1])) / static_cast<double>(whole);
      const auto most = static_cast<std::size_t>(part * static_cast<double>(replays));
      if (most >= 2) search.bridge(ends[i - 1], ends[i], most);
    }
    note(search);
  }

  /// Tries every plan without recomputation, if there are few contents. Returns true if it covered them all.
  bool try_all_plans() {
    Mixture& mixture = mixtures_.front();
    PlanSearch search = search_of(mixture, inputs_.replays_of(kFewPlanEvents, kMostExhaustiveReplays), true);
    search.run_whole(std::vector<double>(mixture.space.versions.size(), 1));
    note(search);
    return search.is_exhaustive();
  }

  void note(const PlanSearch& search) {
    result_.summary.replayed += search.replays();
    result_.effort += search.effort();
  }

  void merge(const Frontier& peaks) {
    for (const Candidate& candidate : peaks.candidates()) peaks_.add(candidate);
    for (const Candidate& candidate : peaks.runners_up()) peaks_.add(candidate);
  }

  const TuneInputs& inputs_;
  const PlanSpace& space_;
  Frontier& peaks_;
  const StageProgress& progress_;
  std::deque<Mixture> mixtures_;
  std::size_t may_replay_;
  std::vector<double> shares_;        ///< by version of `relaxed_`
  const Mixture* relaxed_ = nullptr;  ///< the mixture whose relaxation was solved last
  PlanStageResult result_;
};

/// `reached`: metrics of a policy that keeps to the aim.
PlanBound bound_for(const PlanRelaxation& relaxation, const Aim& aim, const Metrics& reached) {
  if (aim.most_peak) return relaxation.least_time(*aim.most_peak, *reached.step_time_ns);
  return relaxation.least_peak(*aim.most_time, *reached.device_peak_bytes);
}

}  // namespace

PlanStageResult search_plans(const TuneInputs& inputs, const PlanSpace& space, bool goes_by_facts,
                             Frontier& peaks, const StageProgress& progress) {
  return LadderSearch(inputs, space, peaks, progress).search(goes_by_facts);
}

GoalBound bound_for_goal(const TuneInputs& inputs, const GoalOrder& order, const PlanSpace& space,
                         const Candidate& chosen) {
  std::vector<std::optional<Nanoseconds>> times =
      recompute_times(inputs.steps.program(inputs.base), space.versions);
  const bool recomputes = std::ranges::any_of(times, [](const auto& time) { return time.has_value(); });
  const PlanRelaxation relaxation(inputs.step, inputs.link, space.versions, space.least,
                                  inputs.goal.host_memory_bytes, std::move(times));
  const Aim aim = order.aim();
  const auto reached = static_cast<double>(aim.most_peak ? step_time_of(chosen) : taken_by(chosen));
  const PlanBound bound = bound_for(relaxation, aim, chosen.predicted);
  const auto trivial = static_cast<double>(aim.most_peak ? order.keep_time() : space.least.peak);
  const double value = std::max(bound.value, trivial);
  return {value, value > 0 ? (reached - value) / value : 0, bound.rows,
          recomputes ? BoundFamily::kOffloadAndRecompute : BoundFamily::kOffload};
}

}  // namespace offprof

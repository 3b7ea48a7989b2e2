#include "simulator/tuner/tune.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "simulator/replay/replay.h"
#include "simulator/tuner/plans/least_memory.h"
#include "simulator/tuner/plans/plan_bound.h"
#include "simulator/tuner/plans/plan_search.h"
#include "simulator/tuner/prices.h"
#include "simulator/tuner/settings/family_search.h"
#include "simulator/tuner/settings/movable_version.h"
#include "simulator/tuner/settings/parallel.h"
#include "simulator/tuner/settings/setting_sweep.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// Searches are limited by replayed events, not by a clock, so that results are reproducible; a core replays
/// some tens of millions of events per second. A search of all plans may take longer.
constexpr std::size_t kFamilyEvents = 60'000'000, kPlanEvents = 100'000'000, kFewPlanEvents = 400'000'000;
/// Limits for placements alone and for assignments to groups; these policies do not share a beginning.
constexpr std::size_t kPlacementEvents = 60'000'000, kMostPlacementReplays = 5'000;
constexpr std::size_t kFewestReplays = 500, kMostReplays = 50'000, kMostExhaustiveReplays = 1'000'000;
/// Upper bound on the runs of the plan search. It aims at a lower peak if a caching allocator takes more than
/// the peak.
constexpr std::size_t kMostAims = 3;
/// The allocator's memory is also computed for policies dominated by a small margin in peak and time: for at
/// most this many of them, with at most this many events in total.
constexpr std::size_t kMostRunnersUp = 256, kRunnerUpEvents = 2'000'000;
/// Step times above this value do not fit the clocks.
constexpr double kLongest = 9e18;

std::size_t replays_of(std::size_t events, const Step& step, std::size_t most = kMostReplays) {
  return std::clamp(events / std::max<std::size_t>(step.events().size(), 1), kFewestReplays, most);
}

std::size_t most_runners_up(const Step& step) {
  if (!step.allocator()) return 0;
  return std::clamp<std::size_t>(kRunnerUpEvents / std::max<std::size_t>(step.events().size(), 1), 1,
                                 kMostRunnersUp);
}

Bytes taken_by(const Candidate& candidate) {
  return device_bytes_taken(candidate.predicted);
}
Nanoseconds step_time_of(const Candidate& candidate) {
  return *candidate.predicted.step_time_ns;
}

/// Returns the Pareto frontier over device bytes and step time, least memory first.
std::vector<Candidate> frontier_by_taken(std::vector<Candidate> candidates) {
  const auto key = [](const Candidate& candidate) {
    return std::pair(taken_by(candidate), step_time_of(candidate));
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
  std::vector<Candidate> frontier;
  for (Candidate& candidate : candidates)
    if (frontier.empty() || step_time_of(candidate) < step_time_of(frontier.back()))
      frontier.push_back(std::move(candidate));
  return frontier;
}

using Progress = std::function<void(const std::string&)>;

class Tuning {
 public:
  Tuning(const TraceSteps& steps, const Link& link, const TuneGoal& goal, const Progress& progress)
      : steps_(steps),
        link_(link),
        goal_(goal),
        progress_(progress),
        step_(steps.step(preset_policy("keep"))),
        tree_(step_, link),
        versions_(movable_versions(step_)),
        least_(least_memory_of(step_, versions_)),
        frontier_(most_runners_up(step_)) {
    base_.name = "tuned";
    base_.host_memory_bytes = goal.host_memory_bytes;
    base_.disk_memory_bytes = goal.disk_memory_bytes;
  }

  TuneResult run() {
    tell("replaying presets");
    replay_presets();
    tell("trying thresholds, stash sizes and prefetch windows");
    search_family();
    take_frontier();
    result_.chosen = choose();
    if (goal_.searches_plans) {
      tell("searching plans");
      search_plans();
    }
    tell("searching placements");
    search_placements();
    tell("explaining the chosen policy");
    explain();
    return std::move(result_);
  }

 private:
  void tell(const std::string& what) const {
    progress_(what + (result_.policies_tried > 0
                          ? "; " + std::to_string(result_.policies_tried) + " policies replayed so far"
                          : ""));
  }

  void replay_presets() {
    const Policy keep = preset_policy("keep"), trl = preset_policy("trl");
    const Candidate kept{keep, replay(step_, keep, link_).metrics};
    frontier_.add(kept);
    result_.policies_tried = 1;
    result_.keep = {keep, steps_.with_cache(keep, kept.predicted)};
    result_.trl = {trl, steps_.predict(trl, link_)};
    result_.device_peak_bound_bytes = least_.peak;
    result_.least_peak_event = least_.peak_event;
    result_.step_time_bound_ns = keep_time();
    result_.slows_compute = step_.costs().slowdown_ns_per_byte > 0;
  }

  Nanoseconds keep_time() const { return step_time_of(result_.keep); }
  Nanoseconds slowest() const {
    const double slowest = static_cast<double>(keep_time()) * (1 + goal_.max_slowdown);
    return static_cast<Nanoseconds>(std::min(slowest, kLongest));
  }

  void search_family() {
    const std::size_t replays = replays_of(kFamilyEvents, step_);
    const std::vector<Policy> grid = coarse_grid(versions_, base_, replays);
    const FamilyRanges family = family_ranges(versions_, base_, replays);
    result_.family.slack_ns = slack_of_waits(step_, static_cast<std::int64_t>(versions_.size()));
    forget_what_plans_need();
    try_all(grid);
    SettingSweep sweep(tree_, frontier_, {replays, {}, goal_.threads, goal_.shares_replays, true});
    for (const SettingRange& range : family.ranges) sweep.add(range);
    sweep.run();
    result_.policies_tried += sweep.replays();
    result_.effort += sweep.effort();
    result_.family.settings = family.settings;
    result_.family.replayed = result_.policies_tried - 1;
    result_.family.is_whole = family.is_whole && sweep.is_complete();
    result_.family.is_exact = result_.family.is_whole && goes_by_facts();
  }

  /// Returns true if everything that a search leaves out is certainly no better: see FamilySearch::is_exact.
  bool goes_by_facts() const {
    return !result_.slows_compute && !step_.allocator() && result_.family.slack_ns == 0;
  }

  /// For a long step this is a lot of memory, and replays are still to come.
  void forget_what_plans_need() {
    if (goal_.searches_plans) return;
    least_ = {};
    versions_ = {};
  }

  void try_all(const std::vector<Policy>& policies) {
    std::vector<Candidate> candidates(policies.size());
    std::vector<ReplayTree::Job> jobs;
    for (const Policy& policy : policies) jobs.push_back({policy});
    result_.effort += tree_.replay(jobs, {.shares = goal_.shares_replays, .threads = goal_.threads},
                                   [&](std::size_t i, const ReplayTree::Replayed& replayed) {
                                     candidates[i] = {policies[i], replayed.metrics};
                                   });
    for (const Candidate& candidate : candidates) frontier_.add(candidate);
    result_.policies_tried += candidates.size();
  }

  void take_frontier() {
    std::vector<Candidate> candidates = frontier_.candidates();
    if (step_.allocator()) {
      for (Candidate& candidate : frontier_.runners_up()) candidates.push_back(std::move(candidate));
      known_ = with_cache(std::move(candidates));
      candidates = known_;
    }
    result_.frontier = frontier_by_taken(std::move(candidates));
  }

  /// Candidates in known_ are not followed through the allocator again.
  std::vector<Candidate> with_cache(std::vector<Candidate> candidates) const {
    for_each_index(candidates.size(), tree_.threads({.threads = goal_.threads}), [&](std::size_t i) {
      Candidate& candidate = candidates[i];
      const auto known = std::find_if(known_.begin(), known_.end(), [&](const Candidate& other) {
        return step_time_of(other) == step_time_of(candidate) && other.policy == candidate.policy;
      });
      candidate.predicted =
          known != known_.end() ? known->predicted : steps_.with_cache(candidate.policy, candidate.predicted);
    });
    return candidates;
  }

  /// The frontier is sorted by memory, and therefore, in reverse, by time.
  std::optional<Candidate> choose() const {
    const std::vector<Candidate>& frontier = result_.frontier;
    const auto first_of = [](auto begin, auto end, const auto& is_within) {
      const auto found = std::find_if(begin, end, is_within);
      return found == end ? std::nullopt : std::optional(*found);
    };
    if (goal_.memory_budget_bytes)
      return first_of(frontier.rbegin(), frontier.rend(), [&](const Candidate& c) { return fits(c); });
    return first_of(frontier.begin(), frontier.end(),
                    [&](const Candidate& c) { return step_time_of(c) <= slowest(); });
  }

  bool fits(const Candidate& candidate) const {
    return taken_by(candidate) <= *goal_.memory_budget_bytes &&
           steps_.fits(candidate.policy, *goal_.memory_budget_bytes);
  }

  void search_plans() {
    const PlanRelaxation relaxation(step_, link_, versions_, least_, goal_.host_memory_bytes);
    const bool is_small = versions_.size() <= PlanSearch::Limits{}.exhaustive_versions;
    const std::size_t replays =
        is_small ? replays_of(kFewPlanEvents, step_, kMostExhaustiveReplays) : replays_of(kPlanEvents, step_);
    PlanSearch search(step_, link_, versions_, base_, frontier_,
                      {.replays = replays,
                       .runs = may_aim_lower() ? kMostAims : 1,
                       .threads = goal_.threads,
                       .shares = goal_.shares_replays});
    Aim aim = goal_aim();
    for (std::size_t i = 0; i < kMostAims; ++i) {
      search.run(aim, bound_for(relaxation, aim, frontier_.best(aim).predicted).moved);
      take_frontier();
      result_.chosen = choose();
      if (!aims_lower(aim)) break;
    }
    const bool is_whole = search.is_exhaustive();
    result_.plans = {versions_.size(), search.replays(), is_whole, is_whole && goes_by_facts()};
    result_.policies_tried += search.replays();
    result_.effort += search.effort();
    if (result_.chosen) bound_goal(relaxation);
  }

  bool may_aim_lower() const { return goal_.memory_budget_bytes && step_.allocator(); }

  /// Lowers the aim to the best plan's peak minus the excess of its allocator memory over the budget. Returns
  /// false if that is not possible or not needed.
  bool aims_lower(Aim& aim) const {
    if (!may_aim_lower()) return false;
    const Candidate best = with_cache({frontier_.best(aim)}).front();
    if (result_.chosen && result_.chosen->policy == best.policy) return false;
    const Bytes over = taken_by(best) - *goal_.memory_budget_bytes;
    if (over <= 0) return false;
    *aim.most_peak = *best.predicted.device_peak_bytes - over;
    return *aim.most_peak >= least_.peak;
  }

  Aim goal_aim() const {
    Aim aim{goal_.memory_budget_bytes, {}};
    if (!aim.most_peak) aim.most_time = slowest();
    return aim;
  }

  /// `reached`: metrics of a policy that keeps to the aim.
  static PlanBound bound_for(const PlanRelaxation& relaxation, const Aim& aim, const Metrics& reached) {
    if (aim.most_peak) return relaxation.least_time(*aim.most_peak, *reached.step_time_ns);
    return relaxation.least_peak(*aim.most_time, *reached.device_peak_bytes);
  }

  void bound_goal(const PlanRelaxation& relaxation) {
    const Aim aim = goal_aim();
    const Candidate& chosen = *result_.chosen;
    const auto reached = static_cast<double>(aim.most_peak ? step_time_of(chosen) : taken_by(chosen));
    const PlanBound bound = bound_for(relaxation, aim, chosen.predicted);
    const double value =
        std::max(bound.value, static_cast<double>(aim.most_peak ? keep_time() : least_.peak));
    result_.goal_bound = {value, value > 0 ? (reached - value) / value : 0, bound.rows};
  }

  void search_placements() {
    std::vector<TransformProfile> profiles;
    for (const TransformProfile& profile : steps_.transforms())
      if (profile.is_lossless || goal_.allows_loss) profiles.push_back(profile);
    std::vector<Place> places = {Place::kDevice, Place::kHost};
    if (link_.disk.is_known()) places.push_back(link_.disk.place());
    const auto& recomputations = steps_.program(base_).recomputations;
    if (profiles.empty() && !link_.disk.is_known() && (!recomputations || recomputations->empty())) return;
    const PlacementJudge judge = {[&](const Policy& policy) {
                                    return Candidate{policy, steps_.predict(policy, link_)};
                                  },
                                  [&](const Candidate& a, const Candidate& b) {
                                    return distance_from_goal(a) < distance_from_goal(b);
                                  }};
    Policy base = result_.chosen ? result_.chosen->policy : base_;
    base.host_memory_bytes = goal_.host_memory_bytes;  // presets have no cap
    base.disk_memory_bytes = goal_.disk_memory_bytes;
    result_.placements =
        offprof::search_placements(steps_.program(base), profiles, places, base, judge,
                                   replays_of(kPlacementEvents, step_, kMostPlacementReplays), goal_.threads);
    result_.policies_tried += result_.placements->replayed;
    take(result_.placements->best);
  }

  /// Candidates within the goal's limit come first, the best one first; then those beyond it, nearest first.
  std::tuple<bool, double, double> distance_from_goal(const Candidate& candidate) const {
    const auto taken = static_cast<double>(taken_by(candidate));
    const auto time = static_cast<double>(step_time_of(candidate));
    if (!goal_.memory_budget_bytes) {
      const auto most = static_cast<double>(slowest());
      return time <= most ? std::tuple(false, taken, time) : std::tuple(true, time, taken);
    }
    const bool is_within = taken <= static_cast<double>(*goal_.memory_budget_bytes);
    return is_within ? std::tuple(false, time, taken) : std::tuple(true, taken, time);
  }

  /// Adds the candidate to the frontier, and chooses it if it is better for the goal than the chosen one.
  void take(const Candidate& candidate) {
    if (!has_rules(candidate)) return;
    const bool is_within = goal_.memory_budget_bytes ? fits(candidate) : step_time_of(candidate) <= slowest();
    result_.frontier.push_back(candidate);
    result_.frontier = frontier_by_taken(std::move(result_.frontier));
    if (!is_within || (result_.chosen && !is_better(candidate, *result_.chosen))) return;
    result_.chosen = candidate;
    result_.goal_bound.reset();
  }

  void explain() {
    if (!result_.chosen) return;
    result_.reliefs = reliefs_of(step_, result_.chosen->policy, link_);
    result_.fills_host = fills_host(step_, result_.chosen->policy);
    result_.memory_price = memory_price(result_.frontier, *result_.chosen);
    result_.binding = binding();
    result_.link_price = price_link();
  }

  GoalLimit binding() const {
    if (goal_.memory_budget_bytes) return result_.memory_price ? GoalLimit::kDeviceMemory : GoalLimit::kNone;
    const bool takes_least = taken_by(*result_.chosen) == taken_by(result_.frontier.front());
    return takes_least ? GoalLimit::kNone : GoalLimit::kSlowdown;
  }

  /// Returns the price of a link twice as fast.
  LinkPrice price_link() const {
    LinkPrice price;
    const Link faster = times_as_fast(link_, price.factor);
    std::vector<Candidate> candidates = result_.frontier;
    for_each_index(candidates.size(), tree_.threads({.threads = goal_.threads}), [&](std::size_t i) {
      candidates[i].predicted.step_time_ns = replay(step_, candidates[i].policy, faster).metrics.step_time_ns;
    });
    price.best = *result_.chosen;
    price.best.predicted = steps_.predict(price.best.policy, faster);
    for (const Candidate& candidate : candidates)
      if (is_better(candidate, price.best)) price.best = candidate;
    price.best.predicted = steps_.predict(price.best.policy, faster);
    return price;
  }

  /// Returns true if `a` is better for the goal than `b`, which is within the goal's limit.
  bool is_better(const Candidate& a, const Candidate& b) const {
    if (!goal_.memory_budget_bytes)
      return step_time_of(a) <= slowest() &&
             std::pair(taken_by(a), step_time_of(a)) < std::pair(taken_by(b), step_time_of(b));
    return step_time_of(a) < step_time_of(b) && fits(a);
  }

  const TraceSteps& steps_;
  Link link_;
  const TuneGoal& goal_;
  const Progress& progress_;
  const Step& step_;
  ReplayTree tree_;
  std::vector<MovableVersion> versions_;
  LeastMemory least_;
  Policy base_;
  Frontier frontier_;             ///< over device peak and step time
  std::vector<Candidate> known_;  ///< with the allocator's memory, if there is an allocator
  TuneResult result_;
};

}  // namespace

const Candidate& least_memory(const TuneResult& result) {
  OFFPROF_CHECK(!result.frontier.empty());
  return *std::ranges::min_element(result.frontier, {}, [](const Candidate& candidate) {
    return device_bytes_taken(candidate.predicted);
  });
}

bool has_rules(const Candidate& candidate) {
  return !candidate.policy.rules.empty();
}

bool is_plan(const Candidate& candidate) {
  return candidate.policy.tensors.has_value();
}

TuneResult tune(const TraceSteps& steps, const Link& link, const TuneGoal& goal,
                const std::function<void(const std::string&)>& progress) {
  return Tuning(steps, link, goal, progress).run();
}

}  // namespace offprof

#include "simulator/tune.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "simulator/replay.h"
#include "simulator/tuner/family_search.h"
#include "simulator/tuner/least_memory.h"
#include "simulator/tuner/movable_version.h"
#include "simulator/tuner/parallel.h"
#include "simulator/tuner/plan_bound.h"
#include "simulator/tuner/plan_search.h"
#include "simulator/tuner/prices.h"
#include "simulator/tuner/setting_sweep.h"
#include "traces/check.h"

namespace offprof {
namespace {

/// What a search may replay is limited in events, not by a clock, so that its result can be had again: a core
/// replays some tens of millions a second.
constexpr std::size_t kFamilyEvents = 60'000'000, kPlanEvents = 100'000'000;
constexpr std::size_t kFewestReplays = 500, kMostReplays = 50'000, kMostExhaustiveReplays = 400'000;
/// Where a caching allocator takes more than the peak, the plan search aims lower, so many times at most.
constexpr int kMostAims = 3;

std::size_t replays_of(std::size_t events, const Step& step, std::size_t most = kMostReplays) {
  return std::clamp(events / std::max<std::size_t>(step.events().size(), 1), kFewestReplays, most);
}

class Tuning {
 public:
  Tuning(const TraceSteps& steps, const Link& link, const TuneGoal& goal)
      : steps_(steps),
        link_(link),
        goal_(goal),
        step_(steps.step(preset_policy("keep"))),
        tree_(step_, link),
        versions_(movable_versions(step_)),
        least_(least_memory_of(step_, versions_)) {
    base_.name = "tuned";
    base_.host_memory_bytes = goal.host_memory_bytes;
  }

  TuneResult run() {
    replay_presets();
    search_family();
    take_frontier();
    result_.chosen = choose();
    if (goal_.searches_plans) search_plans();
    explain();
    return std::move(result_);
  }

 private:
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
  }

  Nanoseconds keep_time() const { return *result_.keep.predicted.step_time_ns; }
  Nanoseconds slowest() const {
    return static_cast<Nanoseconds>(static_cast<double>(keep_time()) * (1 + goal_.max_slowdown));
  }

  void search_family() {
    const std::size_t replays = replays_of(kFamilyEvents, step_);
    try_all(coarse_grid(versions_, base_));
    const FamilyRanges family = family_ranges(versions_, base_, replays);
    SettingSweep sweep(tree_, frontier_, {replays, {}, {}, goal_.threads, goal_.shares_replays, true});
    for (const SettingRange& range : family.ranges) sweep.add(range);
    sweep.run();
    result_.policies_tried += sweep.replays();
    result_.effort += sweep.effort();
    const bool is_whole = family.is_whole && sweep.is_complete();
    result_.family = {family.settings, result_.policies_tried - 1, is_whole, is_whole && !is_slowed_down()};
  }

  bool is_slowed_down() const { return step_.costs().slowdown_ns_per_byte > 0; }

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
    result_.frontier = frontier_.candidates();
    for_each_index(result_.frontier.size(), goal_.threads, [&](std::size_t i) {
      Candidate& candidate = result_.frontier[i];
      candidate.predicted = steps_.with_cache(candidate.policy, candidate.predicted);
    });
  }

  /// The frontier is sorted by memory, and so, the other way round, by time.
  std::optional<Candidate> choose() const {
    const std::vector<Candidate>& frontier = result_.frontier;
    const auto fits = [&](const Candidate& candidate) {
      return device_bytes_taken(candidate.predicted) <= *goal_.memory_budget_bytes &&
             steps_.fits(candidate.policy, *goal_.memory_budget_bytes);
    };
    const auto is_fast = [&](const Candidate& candidate) {
      return *candidate.predicted.step_time_ns <= slowest();
    };
    if (goal_.memory_budget_bytes) {
      const auto found = std::find_if(frontier.rbegin(), frontier.rend(), fits);
      return found == frontier.rend() ? std::nullopt : std::optional(*found);
    }
    const auto found = std::find_if(frontier.begin(), frontier.end(), is_fast);
    return found == frontier.end() ? std::nullopt : std::optional(*found);
  }

  void search_plans() {
    const PlanRelaxation relaxation(step_, link_, versions_, least_, goal_.host_memory_bytes);
    const bool is_small = versions_.size() <= PlanSearch::Limits{}.exhaustive_versions;
    const std::size_t replays =
        replays_of(kPlanEvents, step_, is_small ? kMostExhaustiveReplays : kMostReplays);
    PlanSearch search(
        step_, link_, versions_, base_, frontier_,
        {replays, PlanSearch::Limits{}.exhaustive_versions, goal_.threads, goal_.shares_replays});
    Aim aim = goal_aim();
    for (int i = 0; i < kMostAims; ++i) {
      search.run(aim, bound_for(relaxation, aim, frontier_.best(aim).predicted).moved);
      take_frontier();
      result_.chosen = choose();
      if (!aims_lower(aim)) break;
    }
    result_.plans = {versions_.size(), search.replays(), search.is_exhaustive() && !is_slowed_down()};
    result_.policies_tried += search.replays();
    result_.effort += search.effort();
    if (result_.chosen) bound_goal(relaxation);
  }

  /// What the best plan's allocator takes beyond its peak must go off the peak that is aimed at.
  bool aims_lower(Aim& aim) const {
    if (!aim.most_peak || !step_.allocator()) return false;
    const Candidate best = frontier_.best(aim);
    if (result_.chosen && result_.chosen->policy == best.policy) return false;
    const Metrics metrics = steps_.with_cache(best.policy, best.predicted);
    const Bytes over = device_bytes_taken(metrics) - *goal_.memory_budget_bytes;
    if (over <= 0) return false;
    *aim.most_peak = *best.predicted.device_peak_bytes - over;
    return *aim.most_peak >= least_.peak;
  }

  Aim goal_aim() const {
    Aim aim{goal_.memory_budget_bytes, {}};
    if (!aim.most_peak) aim.most_time = slowest();
    return aim;
  }

  /// `reached`: what a policy that keeps to the aim comes to.
  static PlanBound bound_for(const PlanRelaxation& relaxation, const Aim& aim, const Metrics& reached) {
    if (aim.most_peak) return relaxation.least_time(*aim.most_peak, *reached.step_time_ns);
    return relaxation.least_peak(*aim.most_time, *reached.device_peak_bytes);
  }

  void bound_goal(const PlanRelaxation& relaxation) {
    const Aim aim = goal_aim();
    const Metrics& chosen = result_.chosen->predicted;
    const auto reached =
        static_cast<double>(aim.most_peak ? *chosen.step_time_ns : *chosen.device_peak_bytes);
    const PlanBound bound = bound_for(relaxation, aim, chosen);
    const double value =
        std::max(bound.value, static_cast<double>(aim.most_peak ? keep_time() : least_.peak));
    result_.goal_bound = {value, value > 0 ? (reached - value) / value : 0, bound.rows};
  }

  void explain() {
    if (!result_.chosen) return;
    result_.reliefs = reliefs_of(step_, result_.chosen->policy, link_);
    result_.fills_host = fills_host(step_, result_.chosen->policy);
    result_.memory_price = memory_price(result_.frontier, *result_.chosen);
    result_.link_price = price_link();
  }

  /// Over a link twice as fast.
  LinkPrice price_link() const {
    LinkPrice price;
    const Link faster = times_as_fast(link_, price.factor);
    std::vector<Candidate> candidates = result_.frontier;
    for_each_index(candidates.size(), goal_.threads, [&](std::size_t i) {
      candidates[i].predicted.step_time_ns = replay(step_, candidates[i].policy, faster).metrics.step_time_ns;
    });
    price.best = *result_.chosen;
    price.best.predicted = steps_.predict(price.best.policy, faster);
    for (const Candidate& candidate : candidates)
      if (is_better(candidate, price.best)) price.best = candidate;
    price.best.predicted = steps_.predict(price.best.policy, faster);
    return price;
  }

  /// For the goal, within which `b` is.
  bool is_better(const Candidate& a, const Candidate& b) const {
    const auto peak = [](const Candidate& c) { return *c.predicted.device_peak_bytes; };
    const auto time = [](const Candidate& c) { return *c.predicted.step_time_ns; };
    if (!goal_.memory_budget_bytes)
      return time(a) <= slowest() && std::pair(peak(a), time(a)) < std::pair(peak(b), time(b));
    return device_bytes_taken(a.predicted) <= *goal_.memory_budget_bytes && time(a) < time(b) &&
           steps_.fits(a.policy, *goal_.memory_budget_bytes);
  }

  const TraceSteps& steps_;
  Link link_;
  const TuneGoal& goal_;
  const Step& step_;
  ReplayTree tree_;
  std::vector<MovableVersion> versions_;
  LeastMemory least_;
  Policy base_;
  Frontier frontier_;
  TuneResult result_;
};

}  // namespace

const Candidate& least_memory(const TuneResult& result) {
  OFFPROF_CHECK(!result.frontier.empty());
  return *std::ranges::min_element(result.frontier, {}, [](const Candidate& candidate) {
    return device_bytes_taken(candidate.predicted);
  });
}

bool is_plan(const Candidate& candidate) {
  return candidate.policy.tensors.has_value();
}

TuneResult tune(const TraceSteps& steps, const Link& link, const TuneGoal& goal) {
  return Tuning(steps, link, goal).run();
}

}  // namespace offprof

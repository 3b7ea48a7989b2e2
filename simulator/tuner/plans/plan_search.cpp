#include "simulator/tuner/plans/plan_search.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "simulator/replay/replay.h"

namespace offprof {
namespace {

/// One part in this many of a search's replays may go into one sweep over all settings of a plan.
constexpr std::size_t kSweepShare = 12;
/// Swaps of a moved version for one that stays are tried among this many of each.
constexpr std::size_t kSwapCandidates = 12;
/// With at most this many versions, any two are changed at once.
constexpr std::size_t kFewVersions = 32;
/// If all sets are tried, the local search runs first, with one part in this many of the replays: the better
/// the known policies, the more sets can be left out.
constexpr std::size_t kLocalShare = 4;
/// Nothing is known about a set until two corners of its settings have been replayed.
constexpr std::size_t kLeastReplaysOfSet = 2;
/// Sets that are swept together; their results determine which of the other sets to leave out.
constexpr std::size_t kSetsAtOnce = 256;
/// Memory for the plans that are replayed together, with this many bytes per version.
constexpr Bytes kPlanBytes = 64 * kMiB, kBytesPerVersion = 12;

std::tuple<Bytes, Nanoseconds, Bytes> rank(const Candidate& candidate, const Aim& aim) {
  const Bytes peak = *candidate.predicted.device_peak_bytes;
  const Nanoseconds time = *candidate.predicted.step_time_ns;
  if (aim.most_peak) return {std::max<Bytes>(0, peak - *aim.most_peak), time, peak};
  return {std::max<Nanoseconds>(0, time - *aim.most_time), peak, time};
}

}  // namespace

PlanSearch::PlanSearch(const Step& step, const Link& link, const std::vector<MovableVersion>& versions,
                       Policy base, Frontier& frontier, const Limits& limits)
    : tree_(step, link), versions_(versions), base_(std::move(base)), frontier_(frontier), limits_(limits) {
  base_.threshold_bytes = 0;
  keep_time_ = *replay(step, preset_policy("keep"), link).metrics.step_time_ns;
}

void PlanSearch::run(const Aim& aim, const std::vector<double>& shares) {
  aim_ = aim;
  const std::size_t runs_left = std::max<std::size_t>(limits_.runs - std::min(limits_.runs, runs_++), 1);
  const std::size_t replays = (limits_.replays - std::min(limits_.replays, replays_)) / runs_left;
  const std::size_t most = replays_ + replays;
  const bool is_small = limits_.tries_all && versions_.size() <= limits_.exhaustive_versions;
  may_replay_ = is_small ? replays_ + replays / kLocalShare : most;
  is_exhaustive_ = versions_.empty();
  if (versions_.empty()) return;
  try_roundings(shares);
  improve(shares);
  may_replay_ = most;
  if (!is_small) return;
  go_through_all(shares);
  if (!is_exhaustive_) improve(shares);
}

std::vector<Candidate> PlanSearch::try_plans(const std::vector<Plan>& plans) {
  aim_ = {};
  may_replay_ = limits_.replays;
  std::vector<Candidate> candidates;
  while (candidates.size() < plans.size() && replays_left() > 0) {
    replay_all({plans.begin() + static_cast<std::ptrdiff_t>(candidates.size()), plans.end()});
    std::ranges::move(last_, std::back_inserter(candidates));
  }
  return candidates;
}

void PlanSearch::run_whole(const std::vector<double>& shares) {
  aim_ = {};
  may_replay_ = limits_.replays;
  is_exhaustive_ = versions_.empty();
  if (!versions_.empty() && versions_.size() <= limits_.exhaustive_versions) go_through_all(shares);
}

void PlanSearch::bridge(const Candidate& from, const Candidate& to, std::size_t most) {
  may_replay_ = limits_.replays;
  Plan plan = plan_of(from.policy);
  const Plan goal = plan_of(to.policy);
  std::vector<std::size_t> differing;
  for (std::size_t v = 0; v < versions_.size(); ++v)
    if (plan.moved[v] != goal.moved[v]) differing.push_back(v);
  const std::size_t steps = std::min(differing.size(), std::max<std::size_t>(most / 2, 1));
  std::vector<Plan> plans;
  for (std::size_t i = 0, changed = 0; i < steps; ++i) {
    for (; changed < (i + 1) * differing.size() / steps; ++changed)
      plan.moved[differing[changed]] = goal.moved[differing[changed]];
    plans.push_back(plan);
    plans.push_back({plan.moved, goal.setting});
  }
  if (!plans.empty() && most_plans() > 0) replay_all(plans);
}

/// Tries the sets most similar to the relaxation's first; tries none if they are too many. For the sets left
/// out, a local search may find a plan with part of the replays.
void PlanSearch::go_through_all(const std::vector<double>& shares) {
  const PlanSets sets(least_memory_of(tree_.step(), versions_), versions_);
  std::vector<PlanSets::Set> order = sets.in_order_of_likeness(shares);
  std::erase_if(order, [&](PlanSets::Set set) { return !can_serve(sets.least_peak(set)); });
  const std::size_t replays = replays_left() - replays_left() / kLocalShare;
  if (kLeastReplaysOfSet * order.size() > replays) return;
  SettingSweep sweep = settings_sweep(replays);
  for (std::size_t begin = 0; begin < order.size() && sweep.is_complete(); begin += kSetsAtOnce) {
    const std::size_t end = std::min(begin + kSetsAtOnce, order.size());
    for (std::size_t i = begin; i < end; ++i)
      if (can_serve(sets.least_peak(order[i]))) add_settings(sweep, plan_that_moves(order[i]));
    sweep.run();
  }
  note(sweep);
  is_exhaustive_ = sweep.is_complete();
}

PlanSearch::Plan PlanSearch::plan_that_moves(PlanSets::Set set) const {
  Plan plan{Choice(versions_.size(), 0), {}};
  for (std::size_t v = 0; v < versions_.size(); ++v) plan.moved[v] = (set >> v) & 1U ? 1 : 0;
  return plan;
}

/// Returns true if a plan whose peak is at least `least_peak` could be better than the known ones.
bool PlanSearch::can_serve(Bytes least_peak) const {
  if (!aim_.most_peak && !aim_.most_time) return !frontier_.reaches(least_peak, keep_time_);
  const Metrics& best = frontier_.best(aim_).predicted;
  if (aim_.most_peak) {
    const bool is_best = *best.device_peak_bytes <= *aim_.most_peak && *best.step_time_ns <= keep_time_;
    return !is_best && least_peak <= *aim_.most_peak;
  }
  return *best.step_time_ns > *aim_.most_time || least_peak < *best.device_peak_bytes;
}

/// Tries the versions that the relaxation moves at all, mostly, and wholly: with the best policy's setting so
/// far, and with several stashes and windows, up to all copies.
void PlanSearch::try_roundings(const std::vector<double>& shares) {
  const Setting known = plan_of(frontier_.best(aim_).policy).setting;
  std::vector<Plan> plans;
  for (const double least : {0.01, 0.5, 0.99}) {
    Plan plan{Choice(versions_.size(), 0), known};
    for (std::size_t v = 0; v < versions_.size(); ++v) plan.moved[v] = shares[v] >= least ? 1 : 0;
    plans.push_back(plan);
    const std::vector<Bytes> sizes = sizes_of(plan.moved);
    const Bytes total = sum_of(sizes);
    for (const std::int64_t stash :
         {std::int64_t{1}, std::int64_t{4}, static_cast<std::int64_t>(sizes.size())}) {
      for (const Bytes window : {Bytes{0}, total / 8, total}) {
        plan.setting = {StashUnit::kCopies, stash, window};
        plans.push_back(plan);
      }
    }
  }
  replay_all(plans);
}

void PlanSearch::improve(const std::vector<double>& shares) {
  bool is_better = true;
  while (is_better && replays_left() > 0) {
    is_better = sweep_settings();
    for (std::size_t size = std::max<std::size_t>(versions_.size() / 4, 1); size > 0; size /= 2)
      while (replays_left() > 0 && flip_pieces(size, shares)) is_better = true;
    while (replays_left() > 0 && (nudge_setting() || try_swaps(shares))) is_better = true;
    if (!is_better) is_better = sweep_neighbours(shares);
  }
}

/// Returns the plans that differ in one version or, with few versions, in two; at most `most`. Those for
/// which the relaxation is least certain come first.
std::vector<PlanSearch::Plan> PlanSearch::neighbours(const std::vector<double>& shares,
                                                     std::size_t most) const {
  const Plan plan = plan_of(frontier_.best(aim_).policy);
  const std::vector<std::size_t> order = in_order_of_doubt(plan, shares);
  std::vector<Plan> plans;
  const auto add_flipped = [&](std::size_t a, std::size_t b) {
    if (plans.size() == most) return;
    Plan& changed = plans.emplace_back(plan);
    changed.moved[a] = plan.moved[a] != 0 ? 0 : 1;
    changed.moved[b] = plan.moved[b] != 0 ? 0 : 1;
  };
  for (const std::size_t v : order) add_flipped(v, v);
  if (versions_.size() <= kFewVersions)
    for (std::size_t a = 0; a < order.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) add_flipped(order[a], order[b]);
  return plans;
}

/// Sweeps all settings of the neighbours. Nothing is known about a neighbour until two corners were replayed.
bool PlanSearch::sweep_neighbours(const std::vector<double>& shares) {
  const Candidate before = frontier_.best(aim_);
  SettingSweep sweep = settings_sweep(replays_left());
  for (const Plan& plan : neighbours(shares, std::min(replays_left() / 2, most_plans())))
    add_settings(sweep, plan);
  run(sweep);
  return beats(frontier_.best(aim_), before);
}

SettingSweep PlanSearch::settings_sweep(std::size_t replays) {
  const bool has_aim = aim_.most_peak || aim_.most_time;
  return SettingSweep(
      tree_, frontier_,
      {replays, has_aim ? std::optional(aim_) : std::nullopt, limits_.threads, limits_.shares});
}

void PlanSearch::add_settings(SettingSweep& sweep, const Plan& plan) const {
  sweep.add_all(policy_of(plan), sizes_of(plan.moved));
}

void PlanSearch::run(SettingSweep& sweep) {
  sweep.run();
  note(sweep);
}

void PlanSearch::note(const SettingSweep& sweep) {
  replays_ += sweep.replays();
  effort_ += sweep.effort();
}

/// Versions for which the relaxation is least certain come first; among equals, those that are off the device
/// for the shortest time.
std::vector<std::size_t> PlanSearch::in_order_of_doubt(const Plan& plan,
                                                       const std::vector<double>& shares) const {
  std::vector<std::size_t> order(versions_.size());
  std::iota(order.rbegin(), order.rend(), 0);
  const auto doubt = [&](std::size_t v) { return plan.moved[v] != 0 ? 1 - shares[v] : shares[v]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return doubt(a) > doubt(b); });
  return order;
}

/// Flips pieces of the moved versions and of the others, one at a time; then flips all pieces that helped
/// together.
bool PlanSearch::flip_pieces(std::size_t size, const std::vector<double>& shares) {
  const Candidate before = frontier_.best(aim_);
  const Plan plan = plan_of(before.policy);
  std::vector<std::vector<std::size_t>> pieces;
  for (const bool moved : {true, false}) {
    std::vector<std::size_t> piece;
    for (const std::size_t v : in_order_of_doubt(plan, shares)) {
      if ((plan.moved[v] != 0) == moved) piece.push_back(v);
      if (piece.size() == size) pieces.push_back(std::exchange(piece, {}));
    }
    if (!piece.empty()) pieces.push_back(piece);
  }
  const auto flipped = [&](std::size_t first, std::size_t count, const std::vector<std::size_t>& which) {
    Plan changed = plan;
    for (std::size_t i = first; i < first + count; ++i)
      for (const std::size_t v : pieces[which[i]]) changed.moved[v] = changed.moved[v] != 0 ? 0 : 1;
    return changed;
  };
  pieces.resize(std::min(pieces.size(), most_plans()));
  std::vector<Plan> plans;
  std::vector<std::size_t> each(pieces.size());
  std::iota(each.begin(), each.end(), 0);
  for (std::size_t i = 0; i < pieces.size(); ++i) plans.push_back(flipped(i, 1, each));
  bool is_better = replay_all(plans);
  std::vector<std::size_t> good;
  for (std::size_t i = 0; i < last_.size(); ++i)
    if (beats(last_[i], before)) good.push_back(i);
  const std::vector<Candidate> results = std::move(last_);
  std::stable_sort(good.begin(), good.end(),
                   [&](std::size_t a, std::size_t b) { return beats(results[a], results[b]); });
  std::vector<Plan> together;
  for (std::size_t count = good.size(); count > 1; count /= 2) together.push_back(flipped(0, count, good));
  return replay_all(together) || is_better;
}

bool PlanSearch::try_swaps(const std::vector<double>& shares) {
  const Plan plan = plan_of(frontier_.best(aim_).policy);
  std::vector<std::size_t> moved, staying;
  for (const std::size_t v : in_order_of_doubt(plan, shares)) {
    std::vector<std::size_t>& side = plan.moved[v] != 0 ? moved : staying;
    if (side.size() < kSwapCandidates) side.push_back(v);
  }
  std::vector<Plan> plans;
  for (const std::size_t out : moved) {
    for (const std::size_t in : staying) {
      plans.push_back(plan);
      std::swap(plans.back().moved[out], plans.back().moved[in]);
    }
  }
  return replay_all(plans);
}

/// Sweeps every setting of the best plan, as far as it can matter.
bool PlanSearch::sweep_settings() {
  const Candidate before = frontier_.best(aim_);
  const Plan plan = plan_of(before.policy);
  SettingSweep sweep = settings_sweep(std::min(replays_left(), limits_.replays / kSweepShare));
  add_settings(sweep, plan);
  run(sweep);
  return beats(frontier_.best(aim_), before);
}

/// Tries slightly larger and smaller stashes and windows.
bool PlanSearch::nudge_setting() {
  const Plan plan = plan_of(frontier_.best(aim_).policy);
  const Bytes largest = distinct_sizes(versions_).back(), smallest = distinct_sizes(versions_).front();
  const std::int64_t unit = plan.setting.unit == StashUnit::kCopies ? 1 : smallest;
  std::vector<Plan> plans;
  for (const std::int64_t stash : {-unit, std::int64_t{0}, unit}) {
    for (const Bytes window : {-largest, -smallest, Bytes{0}, smallest, largest}) {
      Plan& changed = plans.emplace_back(plan);
      changed.setting.stash = std::max<std::int64_t>(0, plan.setting.stash + stash);
      changed.setting.window = std::max<Bytes>(0, plan.setting.window + window);
    }
  }
  return replay_all(plans);
}

bool PlanSearch::replay_all(const std::vector<Plan>& plans) {
  const bool has_aim = aim_.most_peak || aim_.most_time;
  const std::optional<Candidate> before = has_aim ? std::optional(frontier_.best(aim_)) : std::nullopt;
  last_.assign(std::min(plans.size(), most_plans()), {});
  std::vector<ReplayTree::Job> jobs(last_.size());
  for (std::size_t i = 0; i < last_.size(); ++i) jobs[i].policy = policy_of(plans[i]);
  effort_ += tree_.replay(
      jobs, {.shares = limits_.shares, .threads = limits_.threads},
      [&](std::size_t i, const ReplayTree::Replayed& replayed) { last_[i].predicted = replayed.metrics; });
  for (std::size_t i = 0; i < last_.size(); ++i) last_[i].policy = std::move(jobs[i].policy);
  replays_ += last_.size();
  for (const Candidate& candidate : last_) frontier_.add(candidate);
  return before && beats(frontier_.best(aim_), *before);
}

/// Returns the number of plans that can be replayed together.
std::size_t PlanSearch::most_plans() const {
  const Bytes room = kPlanBytes / (kBytesPerVersion * static_cast<Bytes>(versions_.size()));
  return std::min(replays_left(), static_cast<std::size_t>(std::max<Bytes>(room, 1)));
}

bool PlanSearch::beats(const Candidate& a, const Candidate& b) const {
  return rank(a, aim_) < rank(b, aim_);
}

Policy PlanSearch::policy_of(const Plan& plan) const {
  Policy policy = with_setting(base_, plan.setting);
  policy.tensors.emplace();
  for (std::size_t v = 0; v < versions_.size(); ++v)
    if (plan.moved[v] != 0)
      policy.tensors->insert(policy.tensors->end(), versions_[v].tensors.begin(), versions_[v].tensors.end());
  std::sort(policy.tensors->begin(), policy.tensors->end());
  return policy;
}

PlanSearch::Plan PlanSearch::plan_of(const Policy& policy) const {
  Plan plan{Choice(versions_.size(), 0),
            {StashUnit::kCopies, policy.stash_count.value_or(0), policy.prefetch_bytes}};
  if (policy.stash_bytes) plan.setting = {StashUnit::kBytes, *policy.stash_bytes, policy.prefetch_bytes};
  const auto names = [&](SavedId tensor) {
    return !policy.tensors || std::binary_search(policy.tensors->begin(), policy.tensors->end(), tensor);
  };
  for (std::size_t v = 0; v < versions_.size(); ++v)
    plan.moved[v] = policy.threshold_bytes && versions_[v].bytes >= *policy.threshold_bytes &&
                            names(versions_[v].tensors.front())
                        ? 1
                        : 0;
  return plan;
}

std::vector<Bytes> PlanSearch::sizes_of(const Choice& moved) const {
  return sizes_where(versions_, [&](std::size_t v) { return moved[v] != 0; });
}

}  // namespace offprof

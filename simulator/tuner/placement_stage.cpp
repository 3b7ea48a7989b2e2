#include "simulator/tuner/placement_stage.h"

#include <vector>

namespace offprof {
namespace {

/// Limits for placements alone and for assignments to groups; these policies do not share a beginning.
constexpr std::size_t kPlacementEvents = 60'000'000, kMostPlacementReplays = 5'000;

std::vector<TransformProfile> allowed_transforms(const TuneInputs& inputs) {
  std::vector<TransformProfile> profiles;
  for (const TransformProfile& profile : inputs.steps.transforms())
    if (profile.is_lossless || inputs.goal.allows_loss) profiles.push_back(profile);
  return profiles;
}

/// Budgets for which assignments are searched.
constexpr std::size_t kPlacementRungs = 6;

Policy base_for(const TuneInputs& inputs, const std::optional<Candidate>& known) {
  Policy base = known ? known->policy : inputs.base;
  base.host_memory_bytes = inputs.goal.host_memory_bytes;  // presets have no cap
  base.disk_memory_bytes = inputs.goal.disk_memory_bytes;
  return base;
}

/// Returns budgets spread evenly from half of the least memory of the frontier to the most. Placements may go
/// below what moving alone reaches.
std::vector<Bytes> budgets_of(const std::vector<Candidate>& frontier) {
  const Bytes least = taken_by(frontier.front()) / 2, most = taken_by(frontier.back());
  std::vector<Bytes> budgets;
  for (std::size_t i = 1; i <= kPlacementRungs; ++i)
    budgets.push_back(least + (most - least) / static_cast<Bytes>(kPlacementRungs) * static_cast<Bytes>(i));
  return budgets;
}

}  // namespace

std::optional<PlacementStageResult> search_placements(const TuneInputs& inputs, const GoalOrder& order,
                                                      const std::vector<Candidate>& frontier) {
  const std::vector<TransformProfile> profiles = allowed_transforms(inputs);
  const DiskLink& disk = inputs.link.disk;
  std::vector<Place> places = {Place::kDevice, Place::kHost};
  if (disk.is_known()) places.push_back(disk.place());
  const auto& recomputations = inputs.steps.program(inputs.base).recomputations;
  const bool can_recompute = recomputations && !recomputations->empty();
  if (profiles.empty() && !disk.is_known() && !can_recompute) return std::nullopt;
  const bool is_alone = profiles.empty() && !disk.is_known() && inputs.goal.searches_plans;
  const std::size_t replays =
      is_alone ? 0 : inputs.replays_of(kPlacementEvents, kMostPlacementReplays) / kPlacementRungs;

  PlacementStageResult result;
  for (const Bytes budget : budgets_of(frontier)) {
    TuneGoal goal = inputs.goal;
    goal.memory_budget_bytes = budget;
    const GoalOrder towards(goal, inputs.steps, order.keep_time());
    const PlacementJudge judge = {
        [&](const Policy& policy) {
          return Candidate{policy, inputs.steps.predict(policy, inputs.link)};
        },
        [&](const Candidate& a, const Candidate& b) { return towards.distance(a) < towards.distance(b); }};
    const Policy base = base_for(inputs, towards.choose(frontier));
    PlacementSearchResult found = search_placements(inputs.steps.program(base), profiles, places, base, judge,
                                                    replays, inputs.goal.threads);
    result.candidates.push_back(found.best);
    for (const PlacementCost& cost : found.alone) result.candidates.push_back(cost.candidate);
    found.replayed += result.placements.replayed;
    result.placements = std::move(found);
    if (is_alone) break;
  }
  return result;
}

}  // namespace offprof

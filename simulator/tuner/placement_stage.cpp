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

}  // namespace

std::optional<PlacementSearchResult> search_placements(const TuneInputs& inputs, const GoalOrder& order,
                                                       const std::optional<Candidate>& chosen) {
  const std::vector<TransformProfile> profiles = allowed_transforms(inputs);
  const DiskLink& disk = inputs.link.disk;
  std::vector<Place> places = {Place::kDevice, Place::kHost};
  if (disk.is_known()) places.push_back(disk.place());
  const auto& recomputations = inputs.steps.program(inputs.base).recomputations;
  const bool can_recompute = recomputations && !recomputations->empty();
  if (profiles.empty() && !disk.is_known() && !can_recompute) return std::nullopt;

  const PlacementJudge judge = {
      [&](const Policy& policy) {
        return Candidate{policy, inputs.steps.predict(policy, inputs.link)};
      },
      [&](const Candidate& a, const Candidate& b) { return order.distance(a) < order.distance(b); }};
  Policy base = chosen ? chosen->policy : inputs.base;
  base.host_memory_bytes = inputs.goal.host_memory_bytes;  // presets have no cap
  base.disk_memory_bytes = inputs.goal.disk_memory_bytes;
  return search_placements(inputs.steps.program(base), profiles, places, base, judge,
                           inputs.replays_of(kPlacementEvents, kMostPlacementReplays), inputs.goal.threads);
}

}  // namespace offprof

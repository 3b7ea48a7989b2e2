#include "simulator/tuner/family_stage.h"

#include "simulator/tuner/settings/setting_sweep.h"

namespace offprof {
namespace {

constexpr std::size_t kFamilyEvents = 35'000'000;

ReplayEffort replay_all(const TuneInputs& inputs, const std::vector<Policy>& policies, Frontier& peaks) {
  std::vector<Candidate> candidates(policies.size());
  std::vector<ReplayTree::Job> jobs;
  for (const Policy& policy : policies) jobs.push_back({policy});
  const ReplayEffort effort =
      inputs.tree.replay(jobs, {.shares = inputs.goal.shares_replays, .threads = inputs.goal.threads},
                         [&](std::size_t i, const ReplayTree::Replayed& replayed) {
                           candidates[i] = {policies[i], replayed.metrics};
                         });
  for (const Candidate& candidate : candidates) peaks.add(candidate);
  return effort;
}

}  // namespace

FamilyPlan plan_family(const TuneInputs& inputs, const std::vector<MovableVersion>& versions) {
  const std::size_t replays = inputs.replays_of(kFamilyEvents);
  return {replays, coarse_grid(versions, inputs.base, replays), family_ranges(versions, inputs.base, replays),
          slack_of_waits(inputs.step, static_cast<std::int64_t>(versions.size()))};
}

FamilyStageResult search_family(const TuneInputs& inputs, const FamilyPlan& plan, Frontier& peaks) {
  FamilyStageResult result;
  result.effort = replay_all(inputs, plan.grid, peaks);
  SettingSweep sweep(inputs.tree, peaks,
                     {plan.replays, {}, inputs.goal.threads, inputs.goal.shares_replays, true});
  for (const SettingRange& range : plan.family.ranges) sweep.add(range);
  sweep.run();
  result.effort += sweep.effort();
  const bool is_whole = plan.family.is_whole && sweep.is_complete();
  result.summary = {.settings = plan.family.settings,
                    .replayed = plan.grid.size() + sweep.replays(),
                    .is_whole = is_whole,
                    .slack_ns = plan.slack_ns,
                    .is_exact = is_whole && goes_by_facts(inputs, plan.slack_ns)};
  return result;
}

}  // namespace offprof

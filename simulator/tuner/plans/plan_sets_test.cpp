#include "simulator/tuner/plans/plan_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "simulator/replay/replay.h"
#include "simulator/tuner/settings/setting_sweep.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

TEST(PlanSets, AreInOrderOfSimilarity) {
  const Step step(ChainSketch::program(2, 100));
  const std::vector<MovableVersion> versions = movable_versions(step);
  const PlanSets sets(least_memory_of(step, versions), versions);
  EXPECT_THAT(sets.in_order_of_likeness({0.1, 0.8}), testing::ElementsAre(0b10, 0b11, 0b01));
  EXPECT_THAT(sets.in_order_of_likeness({0.9, 0.8}), testing::ElementsAre(0b11, 0b01, 0b10));
}

RC_GTEST_PROP(PlanSetsProperty, NoPlanHasALowerPeakThanTheBoundOfItsSet, ()) {
  const Step step(random_chain(6, 50));
  const std::vector<MovableVersion> versions = movable_versions(step);
  RC_PRE(versions.size() <= PlanSets::kMostVersions);
  const PlanSets sets(least_memory_of(step, versions), versions);
  const auto set = *rc::gen::inRange<PlanSets::Set>(0, 1U << versions.size());
  Policy policy;
  policy.tensors.emplace();
  for (std::size_t v = 0; v < versions.size(); ++v)
    if ((set >> v) & 1U)
      policy.tensors->insert(policy.tensors->end(), versions[v].tensors.begin(), versions[v].tensors.end());
  std::sort(policy.tensors->begin(), policy.tensors->end());
  const Setting setting{StashUnit::kCopies, *rc::gen::inRange(0, 4), *rc::gen::inRange<Bytes>(0, 150)};
  const Metrics metrics = replay(step, with_setting(policy, setting), kAnyLink).metrics;
  RC_ASSERT(sets.least_peak(set) <= *metrics.device_peak_bytes);
}

}  // namespace
}  // namespace offprof

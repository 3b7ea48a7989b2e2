#include "simulator/steps/policy_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/support/sample_program.h"

namespace offprof {
namespace {

/// Returns a step program that saves tensors of many sizes and uses them in reverse order.
Step varied_step() {
  constexpr Bytes kSmallest = 1000;
  constexpr int kTensors = 40;
  ProgramSketch sketch;
  std::vector<SavedId> saved;
  for (int i = 0; i < kTensors; ++i) saved.push_back(sketch.save(sketch.alloc(kSmallest * (1 + i % 8))));
  while (!saved.empty()) {
    sketch.node(saved.back());
    sketch.release(saved.back());
    saved.pop_back();
  }
  return Step(sketch.program());
}

constexpr double kLargestBytes = 8000;

/// Returns the settings that are not presets.
std::vector<Policy> samples(std::size_t count = 60) {
  std::vector<Policy> policies = spanning_policies(varied_step(), count);
  policies.erase(policies.begin(), policies.begin() + 3);
  return policies;
}

template <typename Is>
std::vector<Policy> those(std::vector<Policy> policies, Is is) {
  std::erase_if(policies, [&](const Policy& policy) { return !is(policy); });
  return policies;
}

bool has_plan(const Policy& policy) {
  return policy.tensors.has_value();
}

bool is_trl(const Policy& policy) {
  return policy.scheduler == SchedulerKind::kTrl;
}

bool goes_by_threshold(const Policy& policy) {
  return !has_plan(policy) && !is_trl(policy);
}

/// Returns the number of doublings from the largest storage to `bytes`.
double doublings(Bytes bytes) {
  return std::log2(static_cast<double>(bytes) / kLargestBytes);
}

/// Checks that each quarter of the range from 0 to `most` has about its share of the policies.
template <typename Get>
void expect_even(const std::vector<Policy>& policies, double most, Get get) {
  std::array<double, 4> quarters{};
  for (const Policy& policy : policies)
    quarters.at(static_cast<std::size_t>(std::min(3.0, 4 * static_cast<double>(get(policy)) / most))) += 1;
  for (const double in_quarter : quarters) {
    EXPECT_GE(in_quarter, 0.12 * static_cast<double>(policies.size()));
    EXPECT_LE(in_quarter, 0.45 * static_cast<double>(policies.size()));
  }
}

TEST(SpanningPolicies, BeginWithThePresets) {
  const auto policies = spanning_policies(varied_step(), 3);
  EXPECT_EQ(policies, (std::vector{preset_policy("keep"), preset_policy("offload"), preset_policy("trl")}));
}

TEST(SpanningPolicies, ReachEveryThreshold) {
  const auto by_threshold = those(samples(), goes_by_threshold);
  EXPECT_GE(by_threshold.size(), 25u);
  expect_even(by_threshold, kLargestBytes, [](const Policy& policy) { return *policy.threshold_bytes - 1; });
}

TEST(SpanningPolicies, HavePlansOfFewAndOfManyTensors) {
  const auto plans = those(samples(), has_plan);
  EXPECT_GE(plans.size(), 12u);
  expect_even(plans, 40, [](const Policy& policy) { return policy.tensors->size(); });
}

TEST(SpanningPolicies, VaryTrlsRules) {
  const auto trl = those(samples(), is_trl);
  EXPECT_GE(trl.size(), 6u);
  expect_even(trl, kLargestBytes, [](const Policy& policy) { return *policy.threshold_bytes - 1; });
  for (const Policy& policy : trl) EXPECT_EQ(policy.copy_streams, 1);
}

TEST(SpanningPolicies, StashByCountAndByBytes) {
  const auto offload = those(samples(), [](const Policy& policy) { return !is_trl(policy); });
  const auto in_bytes = those(offload, [](const Policy& policy) { return policy.stash_bytes.has_value(); });
  EXPECT_GE(in_bytes.size(), offload.size() / 4);
  expect_even(in_bytes, 6, [](const Policy& policy) { return 3 + doublings(*policy.stash_bytes); });
  const auto counted = those(offload, [](const Policy& policy) { return policy.stash_count.has_value(); });
  EXPECT_EQ(counted.size() + in_bytes.size(), offload.size());
  expect_even(counted, 14, [](const Policy& policy) { return *policy.stash_count; });
}

TEST(SpanningPolicies, PrefetchOnDemandAndFarAhead) {
  const auto offload = those(samples(), [](const Policy& policy) { return !is_trl(policy); });
  const auto ahead = those(offload, [](const Policy& policy) { return policy.prefetch_bytes > 0; });
  EXPECT_GE(ahead.size(), offload.size() / 3);
  EXPECT_LE(ahead.size(), 2 * offload.size() / 3);
  expect_even(ahead, 3, [](const Policy& policy) { return doublings(policy.prefetch_bytes); });
}

TEST(SpanningPolicies, SometimesHaveOneCopyStream) {
  const auto offload = those(samples(), [](const Policy& policy) { return !is_trl(policy); });
  const auto one = those(offload, [](const Policy& policy) { return policy.copy_streams == 1; });
  EXPECT_GE(one.size(), offload.size() / 6);
  EXPECT_LE(one.size(), offload.size() / 3);
}

/// No setting may be a wasted run.
TEST(SpanningPolicies, AreSpreadEvenIfThereAreFew) {
  const auto few = samples(30);
  EXPECT_GE(those(few, is_trl).size(), 3u);
  expect_even(those(few, goes_by_threshold), kLargestBytes,
              [](const Policy& policy) { return *policy.threshold_bytes - 1; });
  expect_even(those(few, has_plan), 40, [](const Policy& policy) { return policy.tensors->size(); });
  for (std::size_t i = 0; i < few.size(); ++i)
    EXPECT_EQ(std::count(few.begin(), few.end(), few[i]), 1) << describe(few[i]);
}

TEST(SpanningPolicies, AreDeterministic) {
  EXPECT_EQ(spanning_policies(varied_step(), 30), spanning_policies(varied_step(), 30));
}

TEST(SpanningPolicies, AreOnlyKeepIfNothingMayMove) {
  EXPECT_EQ(spanning_policies(Step(ProgramSketch().program()), 30), (std::vector{preset_policy("keep")}));
}

StepProgram program_of(int tensors) {
  ProgramSketch sketch;
  std::vector<SavedId> saved;
  for (int i = 0; i < tensors; ++i) saved.push_back(sketch.save(sketch.alloc(1024)));
  for (; !saved.empty(); saved.pop_back()) {
    sketch.node(saved.back());
    sketch.release(saved.back());
  }
  return sketch.program();
}

TransformProfile profile_of(const std::string& name, const std::vector<std::string>& dtypes) {
  TransformProfile profile{name, true, {}};
  for (const std::string& dtype : dtypes) profile.costs.push_back({dtype, 256, 512, {}, {}});
  return profile;
}

std::set<std::string> placements_in(const std::vector<Policy>& policies) {
  std::set<std::string> names;
  for (const Policy& policy : policies)
    for (const PolicyRule& rule : policy.rules) names.insert(to_string(rule.placement));
  return names;
}

TEST(RuledPolicies, HaveEveryPlacementThatTheTraceHasMeasured) {
  StepProgram program = program_of(4);
  program.recomputations.emplace().emplace_back();
  const std::vector<TransformProfile> profiles = {profile_of("half", {"float32"})};
  const std::set<std::string> expected = {"disk", "recompute", "half", "half+host", "half+disk", "host"};
  EXPECT_EQ(placements_in(ruled_policies(program, profiles, Place::kDisk)), expected);
}

TEST(RuledPolicies, UseNoTransformForDtypesThatItDoesNotAccept) {
  const std::vector<TransformProfile> profiles = {profile_of("half", {"float32", "float64"})};
  for (const Policy& policy : ruled_policies(program_of(4), profiles, /*disk=*/{})) {
    ASSERT_GE(policy.rules.size(), 2U);
    EXPECT_EQ(policy.rules[0].dtype, "float32");
    EXPECT_EQ(policy.rules[1].dtype, "float64");
  }
}

TEST(RuledPolicies, AreEmptyIfNothingIsMeasured) {
  EXPECT_TRUE(ruled_policies(program_of(4), {}, /*disk=*/{}).empty());
}

}  // namespace
}  // namespace offprof

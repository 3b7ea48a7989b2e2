#include "engine/scheduler/limit_ranges.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "simulator/replay/replay.h"
#include "simulator/steps/views.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

constexpr Bytes kMostBytes = 50;

LimitRanges ranges_of(const Step& step, const Policy& policy) {
  PartialReplay replay(step, policy, kAnyLink);
  replay.finish();
  return *replay.limit_ranges();
}

Policy with_count(std::int64_t stash, Bytes window) {
  Policy policy;
  policy.stash_count = stash;
  policy.prefetch_bytes = window;
  return policy;
}

TEST(LimitRanges, AStashThatFillsIsEquivalentToNoOtherCount) {
  const Step step(ChainSketch::program(4, 100));
  EXPECT_EQ(ranges_of(step, with_count(0, 0)).stash_count, (LimitRange{0, 1}));
  EXPECT_EQ(ranges_of(step, with_count(2, 0)).stash_count, (LimitRange{2, 3}));
}

TEST(LimitRanges, AStashThatNeverFillsIsEquivalentToAllLargerOnes) {
  const Step step(ChainSketch::program(4, 100));
  EXPECT_EQ(ranges_of(step, with_count(7, 0)).stash_count, (LimitRange{4, LimitRange::kNoEnd}));
}

TEST(LimitRanges, AStashOfBytesIsEquivalentUpToTheNextCopy) {
  const Step step(ChainSketch::program(4, 100));
  Policy policy;
  policy.stash_bytes = 250;
  EXPECT_EQ(ranges_of(step, policy).stash_bytes, (LimitRange{200, 300}));
  policy.stash_bytes = 50;  // too small for any copy
  EXPECT_EQ(ranges_of(step, policy).stash_bytes, (LimitRange{0, 100}));
}

TEST(LimitRanges, AWindowIsEquivalentUpToTheNextReload) {
  const Step step(ChainSketch::program(4, 100));
  EXPECT_EQ(ranges_of(step, with_count(0, 0)).prefetch_bytes, (LimitRange{0, 100}));
  EXPECT_EQ(ranges_of(step, with_count(0, 150)).prefetch_bytes, (LimitRange{100, 200}));
  EXPECT_EQ(ranges_of(step, with_count(0, 900)).prefetch_bytes, (LimitRange{300, LimitRange::kNoEnd}));
}

/// Returns a policy with one limit of the stash or both.
Policy random_setting() {
  Policy policy = *random_policy(SchedulerKind::kOffload, kMostBytes);
  policy.stash_count = *rc::gen::inRange<std::int64_t>(0, 6);
  policy.stash_bytes = *rc::gen::inRange<Bytes>(0, 4 * kMostBytes);
  const int limits = *rc::gen::inRange(0, 3);
  if (limits == 1) policy.stash_count.reset();
  if (limits == 2) policy.stash_bytes.reset();
  return policy;
}

bool holds(const LimitRange& range, std::int64_t limit) {
  return range.begin <= limit && limit < range.end;
}

std::int64_t any_of(const LimitRange& range) {
  constexpr std::int64_t kFar = 1000;
  return *rc::gen::inRange(range.begin, std::min(range.end, range.begin + kFar));
}

RC_GTEST_PROP(LimitRangesProperty, ContainTheLimitsThemselves, ()) {
  const Step step(random_chain(15, kMostBytes));
  const Policy policy = random_setting();
  const LimitRanges ranges = ranges_of(step, policy);
  RC_ASSERT(holds(ranges.stash_count, policy.stash_count.value_or(ranges.stash_count.begin)));
  RC_ASSERT(holds(ranges.stash_bytes, policy.stash_bytes.value_or(ranges.stash_bytes.begin)));
  RC_ASSERT(holds(ranges.prefetch_bytes, policy.prefetch_bytes));
}

RC_GTEST_PROP(LimitRangesProperty, AllLimitsInThemGiveTheSameCommands, ()) {
  const Step step(random_chain(15, kMostBytes));
  const Policy policy = random_setting();
  const LimitRanges ranges = ranges_of(step, policy);
  Policy other = policy;
  // All other fields are equal: one limit changes.
  const int limit = *rc::gen::inRange(0, 3);
  if (limit == 0) other.prefetch_bytes = any_of(ranges.prefetch_bytes);
  if (limit == 1 && other.stash_bytes) other.stash_bytes = any_of(ranges.stash_bytes);
  if (limit == 2 && other.stash_count) other.stash_count = any_of(ranges.stash_count);
  RC_ASSERT(replay_commands(step, other) == replay_commands(step, policy));
}

}  // namespace
}  // namespace offprof

#include "simulator/tuner/settings/setting_span.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "simulator/steps/views.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

constexpr Bytes kMostBytes = 50;

SettingSpans spans_of(const Step& step, const Policy& policy) {
  SpanListener listener(step, policy);
  replay(step, policy, kAnyLink, &listener);
  return listener.spans();
}

Policy with_count(std::int64_t stash, Bytes window) {
  Policy policy;
  policy.stash_count = stash;
  policy.prefetch_bytes = window;
  return policy;
}

TEST(SettingSpans, AStashThatFillsHasASpanOfOneCount) {
  const Step step(ChainSketch::program(4, 100));
  EXPECT_EQ(spans_of(step, with_count(0, 0)).stash, (LimitRange{0, 1}));
  EXPECT_EQ(spans_of(step, with_count(2, 0)).stash, (LimitRange{2, 3}));
}

TEST(SettingSpans, AStashThatNeverFillsIsEquivalentToAllLargerOnes) {
  const Step step(ChainSketch::program(4, 100));
  EXPECT_EQ(spans_of(step, with_count(7, 0)).stash, (LimitRange{4, LimitRange::kNoEnd}));
}

TEST(SettingSpans, AStashOfBytesIsEquivalentUpToTheNextCopy) {
  const Step step(ChainSketch::program(4, 100));
  Policy policy;
  policy.stash_bytes = 250;
  EXPECT_EQ(spans_of(step, policy).stash, (LimitRange{200, 300}));
  policy.stash_bytes = 50;  // too small for any copy
  EXPECT_EQ(spans_of(step, policy).stash, (LimitRange{0, 100}));
}

TEST(SettingSpans, AWindowIsEquivalentUpToTheNextReload) {
  const Step step(ChainSketch::program(4, 100));
  EXPECT_EQ(spans_of(step, with_count(0, 0)).window, (LimitRange{0, 100}));
  EXPECT_EQ(spans_of(step, with_count(0, 150)).window, (LimitRange{100, 200}));
  EXPECT_EQ(spans_of(step, with_count(0, 900)).window, (LimitRange{300, LimitRange::kNoEnd}));
}

Policy random_setting() {
  Policy policy = *random_policy(SchedulerKind::kOffload, kMostBytes);
  policy.stash_count.reset();
  policy.stash_bytes.reset();
  if (*rc::gen::arbitrary<bool>())
    policy.stash_count = *rc::gen::inRange<std::int64_t>(0, 6);
  else
    policy.stash_bytes = *rc::gen::inRange<Bytes>(0, 4 * kMostBytes);
  return policy;
}

std::int64_t any_of(const LimitRange& range) {
  constexpr std::int64_t kFar = 1000;
  return *rc::gen::inRange(range.begin, std::min(range.end, range.begin + kFar));
}

RC_GTEST_PROP(SettingSpansProperty, ContainTheSettingItself, ()) {
  const Step step(random_chain(15, kMostBytes));
  const Policy policy = random_setting();
  const SettingSpans spans = spans_of(step, policy);
  const std::int64_t stash = policy.stash_bytes ? *policy.stash_bytes : *policy.stash_count;
  RC_ASSERT(spans.stash.begin <= stash && stash < spans.stash.end);
  RC_ASSERT(spans.window.begin <= policy.prefetch_bytes && policy.prefetch_bytes < spans.window.end);
}

RC_GTEST_PROP(SettingSpansProperty, EverySettingInThemGivesTheSameCommands, ()) {
  const Step step(random_chain(15, kMostBytes));
  const Policy policy = random_setting();
  const SettingSpans spans = spans_of(step, policy);
  Policy other = policy;
  if (other.stash_bytes)
    other.stash_bytes = any_of(spans.stash);
  else
    other.stash_count = any_of(spans.stash);
  if (*rc::gen::arbitrary<bool>()) other.prefetch_bytes = any_of(spans.window);
  RC_ASSERT(replay_commands(step, other) == replay_commands(step, policy));
}

}  // namespace
}  // namespace offprof

#include "traces/analysis/timeline_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace offprof {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

Span compute(SpanKind kind, const std::string& name, Nanoseconds begin, Nanoseconds duration) {
  return {Track::kCompute, kind, name, begin, duration, 0, -1, ""};
}
Span op(const std::string& name, Nanoseconds begin, Nanoseconds duration) {
  return compute(SpanKind::kOp, name, begin, duration);
}
Span wait(std::int64_t tensor, Nanoseconds begin, Nanoseconds duration, const std::string& reason = "late") {
  return {Track::kCompute, SpanKind::kWait, "wait for copy in", begin, duration, 0, tensor, reason};
}

/// Returns a step of two phases: `a` twice and `b`, then the gradient of `b`, which waits.
Timeline base_timeline() {
  return {.spans = {compute(SpanKind::kStep, "ProfilerStep#0", 100, 100),
                    compute(SpanKind::kPhase, "forward", 100, 50),
                    op("a", 100, 10),
                    op("a", 110, 20),
                    op("b", 132, 8),
                    compute(SpanKind::kPhase, "backward", 150, 45),
                    op("g", 150, 30),
                    wait(3, 155, 5),
                    {Track::kH2d, SpanKind::kCopy, "copy in", 140, 20, 4000, 3, ""}},
          .flows = {},
          .counters = {}};
}

TimelineDiff diff_of(const Timeline& base, const Timeline& now) {
  return compare(base, now).value();
}

void expect_sums_hold(const TimelineDiff& diff) {
  TimePair phases;
  for (const PhaseDifference& phase : diff.phases) {
    phases.base += phase.time.base;
    phases.now += phase.time.now;
  }
  EXPECT_EQ(phases, diff.step);
  EXPECT_EQ(diff.operators.base + diff.waits.base + diff.rest.base, diff.step.base);
  EXPECT_EQ(diff.operators.now + diff.waits.now + diff.rest.now, diff.step.now);
  Nanoseconds ops = 0, waits = 0;
  for (const OpTimeDifference& one : diff.ops) ops += one.time.difference();
  for (const WaitDifference& one : diff.wait_differences) waits += one.time.difference();
  EXPECT_EQ(ops, diff.operators.difference());
  EXPECT_EQ(waits, diff.waits.difference());
}

TEST(TimelineDiff, SplitsTheStepWithoutRemainder) {
  const TimelineDiff diff = diff_of(base_timeline(), base_timeline());
  EXPECT_EQ(diff.step, (TimePair{100, 100}));
  EXPECT_EQ(diff.operators, (TimePair{63, 63}));
  EXPECT_EQ(diff.waits, (TimePair{5, 5}));
  EXPECT_EQ(diff.rest, (TimePair{32, 32}));
  ASSERT_THAT(diff.phases, SizeIs(3));
  EXPECT_EQ(diff.phases[2].name, "");
  EXPECT_EQ(diff.phases[2].time, (TimePair{5, 5}));
  expect_sums_hold(diff);
}

TEST(TimelineDiff, ListsNothingForTheSameStep) {
  const TimelineDiff diff = diff_of(base_timeline(), base_timeline());
  EXPECT_THAT(diff.ops, IsEmpty());
  EXPECT_THAT(diff.wait_differences, IsEmpty());
  EXPECT_THAT(diff.places, IsEmpty());
  ASSERT_THAT(diff.copies, SizeIs(1));
}

TEST(TimelineDiff, MatchesOperatorsByOccurrence) {
  Timeline now = base_timeline();
  now.spans[3].duration_ns = 15;
  const TimelineDiff diff = diff_of(base_timeline(), now);
  ASSERT_THAT(diff.places, SizeIs(1));
  EXPECT_EQ(diff.places[0].phase, "forward");
  EXPECT_EQ(diff.places[0].op, "a");
  EXPECT_EQ(diff.places[0].occurrence, 2);
  EXPECT_EQ(diff.places[0].base_at, 10);
  EXPECT_EQ(diff.places[0].time, (TimePair{20, 15}));
  ASSERT_THAT(diff.ops, SizeIs(1));
  EXPECT_EQ(diff.ops[0].count, (CountPair{2, 2}));
  EXPECT_EQ(diff.ops[0].time, (TimePair{30, 25}));
  expect_sums_hold(diff);
}

TEST(TimelineDiff, AttributesNestedOperatorsToTheOuterOne) {
  Timeline now = base_timeline();
  now.spans.push_back(op("inner", 112, 5));
  now.spans.push_back(op("innermost", 113, 2));
  EXPECT_THAT(diff_of(base_timeline(), now).ops, IsEmpty());
}

TEST(TimelineDiff, CountsAMissingOperatorAsNoTime) {
  Timeline now = base_timeline();
  now.spans[4].name = "c";
  const TimelineDiff diff = diff_of(base_timeline(), now);
  ASSERT_THAT(diff.places, SizeIs(2));
  EXPECT_EQ(diff.places[0].op, "b");
  EXPECT_EQ(diff.places[0].now_at, std::nullopt);
  EXPECT_EQ(diff.places[0].time, (TimePair{8, 0}));
  EXPECT_EQ(diff.places[1].op, "c");
  EXPECT_EQ(diff.places[1].base_at, std::nullopt);
  expect_sums_hold(diff);
}

TEST(TimelineDiff, SubtractsWaitsFromTheirOperators) {
  Timeline now = base_timeline();
  now.spans[6].duration_ns += 7;
  now.spans[7] = wait(3, 155, 12, "slow link");
  now.spans.push_back(wait(4, 190, 2));
  const TimelineDiff diff = diff_of(base_timeline(), now);
  EXPECT_THAT(diff.ops, IsEmpty());
  ASSERT_THAT(diff.wait_differences, SizeIs(2));
  EXPECT_EQ(diff.wait_differences[0].tensor, 3);
  EXPECT_EQ(diff.wait_differences[0].base_reason, "late");
  EXPECT_EQ(diff.wait_differences[0].now_reason, "slow link");
  EXPECT_EQ(diff.wait_differences[0].time, (TimePair{5, 12}));
  EXPECT_EQ(diff.wait_differences[1].count, (CountPair{0, 1}));
  ASSERT_THAT(diff.places, SizeIs(1));
  EXPECT_EQ(diff.places[0].time, (TimePair{30, 37}));
  EXPECT_EQ(diff.places[0].waits, (TimePair{5, 12}));
  expect_sums_hold(diff);
}

/// Returns a part of a wait, as simulations have it.
Span part(const char* name, Track copy_track, Nanoseconds begin, Nanoseconds duration,
          const std::string& reason) {
  return {Track::kCompute, SpanKind::kWait, name, begin, duration, 0, 3, reason, copy_track};
}

/// Returns a step with only these waits.
Timeline waiting(const std::vector<Span>& waits) {
  Timeline timeline{
      .spans = {compute(SpanKind::kStep, "ProfilerStep#0", 0, 100)}, .flows = {}, .counters = {}};
  timeline.spans.insert(timeline.spans.end(), waits.begin(), waits.end());
  return timeline;
}

TEST(TimelineDiff, MatchesAWaitWithOneThatIsSplitIntoParts) {
  const Timeline recorded = waiting({part(kWaitForCopyIn, Track::kH2d, 10, 20, "needed")});
  Timeline simulated = waiting(
      {part(kWaitForLink, Track::kH2d, 10, 12, "busy"), part(kWaitForCopyIn, Track::kH2d, 22, 8, "late")});
  EXPECT_THAT(diff_of(recorded, simulated).wait_differences, IsEmpty());
  simulated.spans.back().duration_ns += 1;
  const TimelineDiff diff = diff_of(recorded, simulated);
  ASSERT_THAT(diff.wait_differences, SizeIs(1));
  EXPECT_EQ(diff.wait_differences[0].name, "wait for copy in");
  EXPECT_EQ(diff.wait_differences[0].base_reason, "needed");
  EXPECT_EQ(diff.wait_differences[0].now_reason, "busy; late");
  EXPECT_EQ(diff.wait_differences[0].count, (CountPair{1, 1}));
  EXPECT_EQ(diff.wait_differences[0].time, (TimePair{20, 21}));
}

TEST(TimelineDiff, SeparatesTheDirectionsOfATensor) {
  const Timeline out = waiting({part(kWaitForLink, Track::kD2h, 10, 20, "busy")});
  const Timeline in = waiting({part(kWaitForLink, Track::kH2d, 10, 20, "busy")});
  EXPECT_THAT(diff_of(out, in).wait_differences, SizeIs(2));
}

TEST(TimelineDiff, IgnoresWaitsOfZeroDuration) {
  const Timeline recorded = waiting({part(kWaitForCopyIn, Track::kH2d, 10, 0, "needed")});
  EXPECT_THAT(diff_of(recorded, waiting({})).wait_differences, IsEmpty());
}

TEST(TimelineDiff, CountsSeparateWaitsOneByOne) {
  const Timeline now = waiting(
      {part(kWaitForLink, Track::kD2h, 10, 2, "busy"), part(kWaitForCopyOut, Track::kD2h, 13, 2, "full")});
  EXPECT_EQ(diff_of(waiting({}), now).wait_differences.at(0).count, (CountPair{0, 2}));
}

TEST(TimelineDiff, ListsLaunchWaitsOutsideOfTheSum) {
  Timeline now = base_timeline();
  const auto launch = [&](Nanoseconds begin, Nanoseconds duration) {
    now.spans.push_back(
        {Track::kLaunchGaps, SpanKind::kWait, kWaitForLaunch, begin, duration, 0, -1, "host"});
  };
  launch(102, 3);
  launch(120, 4);
  launch(160, 5);
  const TimelineDiff diff = diff_of(base_timeline(), now);
  ASSERT_THAT(diff.launch_waits, SizeIs(2));
  EXPECT_EQ(diff.launch_waits[0].phase, "forward");
  EXPECT_EQ(diff.launch_waits[0].count, (CountPair{0, 2}));
  EXPECT_EQ(diff.launch_waits[0].time, (TimePair{0, 7}));
  EXPECT_EQ(diff.launch_waits[1].phase, "backward");
  EXPECT_EQ(diff.waits, (TimePair{5, 5}));
  EXPECT_THAT(diff.ops, IsEmpty());
  expect_sums_hold(diff);
}

TEST(TimelineDiff, DoesNotNestAnOperatorOfZeroDurationInTheNext) {
  const auto step_with = [](Nanoseconds first) {
    return Timeline{.spans = {compute(SpanKind::kStep, "ProfilerStep#0", 0, 100), op("view", 10, first),
                              op("mm", 10 + first, 50), op("view", 60 + first, 5)},
                    .flows = {},
                    .counters = {}};
  };
  const TimelineDiff diff = diff_of(step_with(0), step_with(1));
  ASSERT_THAT(diff.places, SizeIs(1));
  EXPECT_EQ(diff.places[0].op, "view");
  EXPECT_EQ(diff.places[0].occurrence, 1);
  EXPECT_EQ(diff.places[0].time, (TimePair{0, 1}));
  EXPECT_EQ(diff.ops.at(0).count, (CountPair{2, 2}));
}

TEST(TimelineDiff, RecognizesNestedOperatorsByTheirMark) {
  Timeline now = base_timeline();
  Span inner = op("inner", 130, 0);  // at the end of the second `a`
  inner.is_nested = true;
  now.spans.insert(now.spans.begin() + 4, inner);
  EXPECT_THAT(diff_of(base_timeline(), now).ops, IsEmpty());
  now.spans[4].is_nested = false;
  EXPECT_THAT(diff_of(base_timeline(), now).ops, SizeIs(1));
}

TEST(TimelineDiff, TreatsTheFirstOfSimultaneousOperatorsAsTheOuter) {
  Timeline now = base_timeline();
  now.spans.insert(now.spans.begin() + 4, op("inner", 110, 20));
  EXPECT_THAT(diff_of(base_timeline(), now).ops, IsEmpty());
}

TEST(TimelineDiff, SumsCopiesByDirection) {
  Timeline now = base_timeline();
  now.spans.push_back({Track::kH2d, SpanKind::kCopy, "copy in", 160, 30, 6000, 4, ""});
  now.spans.push_back({Track::kD2h, SpanKind::kCopy, "copy out", 110, 1, 50, 4, ""});
  const TimelineDiff diff = diff_of(base_timeline(), now);
  ASSERT_THAT(diff.copies, SizeIs(2));
  EXPECT_EQ(diff.copies[0].track, Track::kD2h);
  EXPECT_EQ(diff.copies[0].bytes, (CountPair{0, 50}));
  EXPECT_EQ(diff.copies[1].count, (CountPair{1, 2}));
  EXPECT_EQ(diff.copies[1].bytes, (CountPair{4000, 10'000}));
  EXPECT_EQ(diff.copies[1].busy, (TimePair{20, 50}));
}

TEST(TimelineDiff, ListsTheLargestDifferenceFirst) {
  Timeline now = base_timeline();
  now.spans[2].duration_ns -= 1;
  now.spans[4].duration_ns -= 6;
  now.spans[6].duration_ns += 4;
  const TimelineDiff diff = diff_of(base_timeline(), now);
  ASSERT_THAT(diff.ops, SizeIs(3));
  EXPECT_EQ(diff.ops[0].op, "b");
  EXPECT_EQ(diff.ops[1].op, "g");
  EXPECT_EQ(diff.ops[2].op, "a");
  EXPECT_EQ(diff.places[0].op, "b");
}

TEST(TimelineDiff, ComparesTheLastStepOfEachSide) {
  Timeline now;
  now.spans = {compute(SpanKind::kStep, "ProfilerStep#0", 0, 90), op("a", 0, 80),
               compute(SpanKind::kStep, "ProfilerStep#1", 95, 70), op("a", 100, 60)};
  const TimelineDiff diff = diff_of(base_timeline(), now);
  EXPECT_EQ(diff.step, (TimePair{100, 70}));
  EXPECT_EQ(diff.operators.now, 60);
}

TEST(TimelineDiff, NeedsAStepOnBothSides) {
  EXPECT_FALSE(compare(base_timeline(), {}).has_value());
  EXPECT_FALSE(compare({}, base_timeline()).has_value());
  EXPECT_TRUE(shows_a_step(base_timeline()));
  EXPECT_FALSE(shows_a_step({}));
}

/// Returns consecutive operators with gaps, waits and nested operators.
Timeline random_timeline(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t bound) { return static_cast<Nanoseconds>(random() % bound); };
  Timeline timeline;
  Nanoseconds now = 0;
  for (int i = 0; i < 50; ++i) {
    now += below(5);
    const Nanoseconds duration = 10 + below(100);
    timeline.spans.push_back(op(std::string(1, static_cast<char>('a' + below(5))), now, duration));
    if (below(2) == 0) timeline.spans.push_back(op("inner", now + 1, 3));
    if (below(2) == 0) timeline.spans.push_back(wait(below(20), now + 5, below(5)));
    now += duration;
    if (below(3) == 0) {
      timeline.spans.push_back(wait(below(20), now, 4));
      now += 4;
    }
  }
  timeline.spans.push_back(compute(SpanKind::kPhase, "forward", 0, now / 2));
  timeline.spans.push_back(compute(SpanKind::kStep, "ProfilerStep#0", 0, now + below(10)));
  return timeline;
}

TEST(TimelineDiff, HasConsistentSumsForAnySteps) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_sums_hold(diff_of(random_timeline(seed), random_timeline(seed + 1000)));
  }
}

}  // namespace
}  // namespace offprof

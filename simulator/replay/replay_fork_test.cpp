#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "simulator/replay/replay.h"
#include "tests/support/command_lists.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

constexpr Bytes kMostBytes = 100;
constexpr Link kLink{{1e9, 5}, {0.7e9, 9}};

/// Records all calls of a replay to its listener that have a time.
class Log final : public ReplayListener {
 public:
  struct Line {
    Command command;
    Nanoseconds now = 0;
    bool operator==(const Line&) const = default;
  };

  void on_command(const Command& command, Nanoseconds now) override { lines.push_back({command, now}); }
  void on_event(std::size_t index, Nanoseconds now) override {
    lines.push_back({Keep{{-1, static_cast<Bytes>(index)}}, now});
  }
  void on_stall(const Stall& stall) override {
    lines.push_back({WaitIn{{stall.tensor, -1, stall.begin_ns}}, stall.duration_ns});
  }

  std::vector<Line> lines;
};

struct Replayed {
  Prediction prediction;
  std::vector<Log::Line> log;
};

Replayed whole(const Step& step, const Policy& policy, const Link& link) {
  Log log;
  const Prediction prediction = replay(step, policy, link, &log);
  return {prediction, log.lines};
}

/// Replays under `first` up to, but not including, `event`, and from there on under `then`.
Replayed forked(const Step& step, const Policy& first, const Policy& then, const Link& link,
                std::size_t event) {
  Log before;
  auto begun = std::make_unique<PartialReplay>(step, first, link, &before);
  begun->advance_to(event);
  Log after = before;
  PartialReplay fork = begun->fork(then, &after);
  begun->finish();  // does not affect the fork
  begun.reset();
  const Prediction prediction = fork.finish();
  return {prediction, after.lines};
}

bool are_equal(const Replayed& a, const Replayed& b) {
  return a.prediction.metrics == b.prediction.metrics && a.prediction.peak_event == b.prediction.peak_event &&
         a.log == b.log;
}

Step any_step() {
  StepProgram program = random_program(kMostBytes);
  add_free_points(program);
  return Step(program, random_costs_with_slowdown(program));
}

Link any_link() {
  const auto direction = [] {
    return LinkDirection{*rc::gen::inRange(1, 40) * 1e8, *rc::gen::inRange(0, 50), *rc::gen::inRange(0, 10)};
  };
  return {direction(), direction(), *rc::gen::inRange(0, 20)};
}

/// Returns `policy` with different values of one or more of the fields that a search changes.
Policy neighbour_of(Policy policy) {
  const Policy other = *random_policy(SchedulerKind::kOffload, kMostBytes);
  const int changed = *rc::gen::inRange(1, 16);
  if ((changed & 1) != 0) policy.prefetch_bytes = other.prefetch_bytes;
  if ((changed & 2) != 0) policy.tensors = other.tensors;
  if ((changed & 4) != 0) {
    policy.stash_count = other.stash_count;
    policy.stash_bytes = other.stash_bytes;
  }
  if ((changed & 8) != 0) policy.threshold_bytes = other.threshold_bytes;
  return policy;
}

RC_GTEST_PROP(PartialReplayProperty, AForkUnderTheSamePolicyEqualsTheWholeReplay, ()) {
  const Step step = any_step();
  const Policy policy = *random_policy(*random_scheduler(), kMostBytes);
  const Link link = any_link();
  const std::size_t event = *rc::gen::inRange<std::size_t>(0, step.events().size() + 1);
  RC_ASSERT(are_equal(forked(step, policy, policy, link, event), whole(step, policy, link)));
}

/// Returns the index of the first event on which the policies do not agree; the number of events if there is
/// none.
std::size_t agreed_events(const Step& step, const Policy& first, const Policy& other) {
  PartialReplay replay(step, first, kLink);
  while (replay.next_event() < step.events().size() && replay.agrees(other))
    replay.advance_to(replay.next_event() + 1);
  return replay.next_event();
}

RC_GTEST_PROP(PartialReplayProperty, AForkWherePoliciesStillAgreeEqualsTheOthersWholeReplay, ()) {
  const Step step = any_step();
  const Policy first = *random_policy(SchedulerKind::kOffload, kMostBytes);
  const Policy then = neighbour_of(first);
  const Link link = any_link();
  const std::size_t event = *rc::gen::inRange<std::size_t>(0, agreed_events(step, first, then) + 1);
  RC_ASSERT(are_equal(forked(step, first, then, link, event), whole(step, then, link)));
}

RC_GTEST_PROP(PartialReplayProperty, AFinishedPartialReplayEqualsTheWholeReplay, ()) {
  const Step step = any_step();
  const Policy policy = *random_policy(SchedulerKind::kOffload, kMostBytes);
  Log log;
  PartialReplay replay(step, policy, kLink, &log);
  for (int stops = 0; stops < 3; ++stops)
    replay.advance_to(*rc::gen::inRange<std::size_t>(0, step.events().size() + 1));
  const Prediction prediction = replay.finish();
  RC_ASSERT(are_equal({prediction, log.lines}, whole(step, policy, kLink)));
}

/// Six layers, each of which saves a tensor of 100 bytes.
class AgreedEventsTest : public testing::Test {
 protected:
  std::size_t agreed(const Policy& a, const Policy& b) const { return agreed_events(step_, a, b); }
  std::size_t first(EventKind kind, SavedId tensor) const {
    std::size_t i = 0;
    while (step_.events()[i].kind != kind || step_.events()[i].id != tensor) ++i;
    return i;
  }
  std::size_t all() const { return step_.events().size(); }

  Step step_{ChainSketch::program(6, 100)};
};

Policy with_stash(std::int64_t count) {
  Policy policy;
  policy.stash_count = count;
  return policy;
}

TEST_F(AgreedEventsTest, EqualPoliciesAgreeOnAll) {
  EXPECT_EQ(agreed(with_stash(2), with_stash(2)), all());
}

TEST_F(AgreedEventsTest, WindowsAgreeUpToTheFirstUnpack) {
  Policy ahead = with_stash(2);
  ahead.prefetch_bytes = 200;
  EXPECT_EQ(agreed(with_stash(2), ahead), first(EventKind::kUnpack, 5));
}

TEST_F(AgreedEventsTest, StashesAgreeUntilTheSmallerIsFull) {
  EXPECT_EQ(agreed(with_stash(2), with_stash(4)), first(EventKind::kPack, 2));
  EXPECT_EQ(agreed(with_stash(4), with_stash(2)), first(EventKind::kPack, 2));
  EXPECT_EQ(agreed(with_stash(0), with_stash(4)), first(EventKind::kPack, 0));
}

TEST_F(AgreedEventsTest, StashesThatNeverFillAgreeOnAll) {
  EXPECT_EQ(agreed(with_stash(6), with_stash(60)), all());
}

TEST_F(AgreedEventsTest, AStashOfBytesAgreesWithOneOfCopiesUntilEitherIsFull) {
  Policy bytes;
  bytes.stash_bytes = 350;
  EXPECT_EQ(agreed(bytes, with_stash(6)), first(EventKind::kPack, 3));
  EXPECT_EQ(agreed(bytes, with_stash(1)), first(EventKind::kPack, 1));
}

TEST_F(AgreedEventsTest, PlansAgreeUpToTheFirstTensorThatOneLacks) {
  Policy a, b;
  a.tensors = {0, 2, 3};
  b.tensors = {0, 2, 4};
  EXPECT_EQ(agreed(a, b), first(EventKind::kPack, 3));
  b.tensors = {0, 2};
  EXPECT_EQ(agreed(a, b), first(EventKind::kPack, 3));
  EXPECT_EQ(agreed(a, {}), first(EventKind::kPack, 1));
}

TEST_F(AgreedEventsTest, ThresholdsAgreeUpToTheFirstTensorBetweenThem) {
  Policy high, higher, low;
  low.threshold_bytes = 50;
  high.threshold_bytes = 101;
  higher.threshold_bytes = 200;
  EXPECT_EQ(agreed(low, high), first(EventKind::kPack, 0));
  EXPECT_EQ(agreed(high, higher), all());
}

TEST_F(AgreedEventsTest, PoliciesThatDifferInOtherFieldsAgreeOnNothing) {
  Policy capped, ruled;
  capped.host_memory_bytes = 1000;
  ruled.rules.resize(1);
  EXPECT_EQ(agreed({}, capped), 0U);
  EXPECT_EQ(agreed({}, ruled), 0U);
  EXPECT_EQ(agreed({}, preset_policy("trl")), 0U);
}

TEST(PartialReplay, StopsBeforeTheGivenEventAndNeverGoesBack) {
  const Step step(ChainSketch::program(4, 100));
  PartialReplay replay(step, preset_policy("offload"), kLink);
  EXPECT_EQ(replay.next_event(), 0U);
  replay.advance_to(7);
  EXPECT_EQ(replay.next_event(), 7U);
  replay.advance_to(3);
  EXPECT_EQ(replay.next_event(), 7U);
  EXPECT_EQ(replay.fork(preset_policy("offload")).next_event(), 7U);
}

TEST(PartialReplay, AForkReportsTheRemainingEventsToItsOwnListener) {
  const Step step(ChainSketch::program(4, 100));
  PartialReplay replay(step, preset_policy("offload"), kLink);
  replay.advance_to(step.events().size() - 1);
  Log log;
  replay.fork(preset_policy("offload"), &log).finish();
  ASSERT_FALSE(log.lines.empty());
  EXPECT_EQ(bytes_of(log.lines.back().command), static_cast<Bytes>(step.events().size() - 1));
}

}  // namespace
}  // namespace offprof

#include "simulator/tuner/settings/setting_sweep.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "simulator/replay/replay.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

constexpr std::size_t kPlenty = 1'000'000;

std::vector<Bytes> sizes_of(const Step& step) {
  return sizes_of(movable_versions(step));
}

/// Sweeps every setting that moves all movable tensors.
Frontier swept(const Step& step, const Link& link, SettingSweep::Limits limits = {kPlenty}) {
  const ReplayTree tree(step, link);
  Frontier frontier;
  SettingSweep sweep(tree, frontier, limits);
  for (const SettingRange& range : setting_ranges({}, sizes_of(step))) sweep.add(range);
  sweep.run();
  return frontier;
}

TEST(SettingRanges, OneSizeNeedsOnlyCounts) {
  const auto ranges = setting_ranges({}, {100, 100, 100});
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(ranges[0].unit, StashUnit::kCopies);
  EXPECT_EQ(ranges[0].last_stash, 3);
  EXPECT_EQ(ranges[0].last_window, 300);
}

TEST(SettingRanges, StashesOfBytesGoFromSizeToSize) {
  const auto ranges = setting_ranges({}, {100, 50, 100});
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[1].first_stash, 50);
  EXPECT_EQ(ranges[1].last_stash, 99);
  EXPECT_EQ(ranges[2].first_stash, 100);
  EXPECT_EQ(ranges[2].last_stash, 250);
}

TEST(SettingSweep, LeavesMostSettingsOut) {
  const Step step(ChainSketch::program(60, 100));
  const ReplayTree tree(step, {{1e9, 10}, {1e9, 10}});
  Frontier frontier;
  SettingSweep sweep(tree, frontier, {kPlenty});
  sweep.add(setting_ranges({}, sizes_of(step)).front());
  sweep.run();
  EXPECT_TRUE(sweep.is_complete());
  EXPECT_LT(sweep.replays(), 61U * 61U / 4);
}

TEST(SettingSweep, StopsAtItsLimitAndReportsIt) {
  const Step step(ChainSketch::program(60, 100));
  const ReplayTree tree(step, {{1e9, 10}, {1e9, 10}});
  Frontier frontier;
  SettingSweep sweep(tree, frontier, {.replays = 5});
  sweep.add(setting_ranges({}, sizes_of(step)).front());
  sweep.run();
  EXPECT_FALSE(sweep.is_complete());
  EXPECT_LE(sweep.replays(), 5U);
}

TEST(SettingSweep, DoesNotDependOnTheNumberOfThreads) {
  const Step step(ChainSketch::program(40, 100));
  const Link link{{1e9, 10}, {7e8, 10}};
  const Frontier one = swept(step, link, {.replays = kPlenty, .threads = 1});
  const Frontier five = swept(step, link, {.replays = kPlenty, .threads = 5});
  ASSERT_EQ(one.candidates().size(), five.candidates().size());
  for (std::size_t i = 0; i < one.candidates().size(); ++i)
    EXPECT_EQ(one.candidates()[i].policy, five.candidates()[i].policy);
}

TEST(SettingSweep, SharingAndKeepingReplaysChangeOnlyTheEffort) {
  const Step step(ChainSketch::program(40, 100));
  const ReplayTree tree(step, {{1e9, 10}, {7e8, 10}});
  std::vector<Frontier> frontiers(3);
  std::vector<ReplayEffort> efforts;
  for (std::size_t i = 0; i < frontiers.size(); ++i) {
    SettingSweep sweep(tree, frontiers[i], {.replays = kPlenty, .shares = i > 0, .keeps_forward = i > 1});
    sweep.add(setting_ranges({}, sizes_of(step)).front());
    sweep.run();
    efforts.push_back(sweep.effort());
  }
  for (const Frontier& frontier : frontiers) {
    ASSERT_EQ(frontier.candidates().size(), frontiers[0].candidates().size());
    for (std::size_t i = 0; i < frontier.candidates().size(); ++i)
      EXPECT_EQ(frontier.candidates()[i].policy, frontiers[0].candidates()[i].policy);
  }
  EXPECT_EQ(efforts[0].events, efforts[0].whole_events);
  EXPECT_LT(efforts[1].events, efforts[0].events);
  EXPECT_LT(efforts[2].events, efforts[1].events);
}

// --- Properties that the sweep relies on ---

struct Outcome {
  Bytes least_peak;
  Bytes peak;
  Nanoseconds least_time;
  Nanoseconds time;
  Nanoseconds slack;
};

/// One kernel that is launched and then waited for, a hundred small ones that are launched beside the copy
/// out, and one that runs after the reload.
TEST(LeastTime, DoesNotExceedTheSettingsOwnTimeIfTheHostWaits) {
  constexpr Nanoseconds kLaunch = 5'000, kTiny = 1'000;
  ProgramSketch sketch;
  const std::int32_t x = sketch.alloc(1000);
  const SavedId saved = sketch.save(x);
  sketch.free(x);
  sketch.node(saved);
  StepProgram program = sketch.program();
  const auto kernel = [](Nanoseconds run) { return Work{kLaunch, run, kLaunch + run, Work::kNoWait, run}; };
  program.work.assign(program.events.size() + 1, {});
  program.work[1] = kernel(1'000'000);       // before the save
  program.work[2] = then({}, {0, 0, 0, 0});  // after it: the host waits
  for (int i = 0; i < 100; ++i) program.work[3] = then(program.work[3], kernel(kTiny));
  const Step step(program);
  const Link link{{1e12, 0}, {1e12, 0}, kLaunch};
  const Policy all = with_setting({}, {StashUnit::kCopies, 1, 0});
  SweepListener listener(step);
  const Nanoseconds time = *replay(step, all, link, &listener).metrics.step_time_ns;
  EXPECT_EQ(listener.copies_out(), 1);
  EXPECT_LE(LeastTime(step, link)(time, listener), time);
}

Outcome outcome(const Step& step, const Policy& policy, const Link& link) {
  SweepListener listener(step);
  const Metrics metrics = replay(step, policy, link, &listener).metrics;
  return {listener.least_peak(), *metrics.device_peak_bytes,
          LeastTime(step, link)(*metrics.step_time_ns, listener), *metrics.step_time_ns,
          slack_of_waits(step, listener.copies_out())};
}

constexpr Bytes kMostBytes = 50;

RC_GTEST_PROP(SettingSweepProperty, ALargerStashOrWindowTakesNoLessMemoryAndNoMoreTime, ()) {
  const StepProgram program = random_chain_beside_copies(15, kMostBytes);
  const Step step(program, random_costs(program));
  const Link link = random_link();
  const std::vector<Bytes> sizes = sizes_of(step);
  RC_PRE(!sizes.empty());
  Policy base;
  base.host_memory_bytes = *random_limit<Bytes>(6 * kMostBytes);
  const auto ranges = setting_ranges(base, sizes);
  const SettingRange range = *rc::gen::elementOf(ranges);
  const auto stash = rc::gen::inRange(range.first_stash, range.last_stash + 1);
  const auto window = rc::gen::inRange<Bytes>(0, range.last_window + 1);
  const auto [low_stash, high_stash] = std::minmax({*stash, *stash});
  const auto [low_window, high_window] = std::minmax({*window, *window});
  const Outcome low = outcome(step, with_setting(base, {range.unit, low_stash, low_window}), link);
  const Outcome high = outcome(step, with_setting(base, {range.unit, high_stash, high_window}), link);
  RC_ASSERT(low.least_peak <= high.least_peak);
  RC_ASSERT(low.least_peak <= low.peak);
  const bool has_slack = low_stash != high_stash || !step.costs().standstills.empty();
  RC_ASSERT(low.time >= high.least_time - (has_slack ? high.slack : 0));
}

/// Three contents of one byte. With a stash of two, the second copy is waited for while the host would wait
/// for the link anyway. With a stash of three, the wait comes when the copy is done, and takes time of its
/// own.
TEST(SlackOfWaits, CoversTheGainOfASmallerStash) {
  const Step step(
      ChainSketch::program(
          {{.bytes = 1,
            .saves_output = false,
            .changes_output = true,
            .output_outlives_use = true,
            .forward_ns = 0,
            .backward_ns = 0},
           {.bytes = 1, .saves_input = true, .changes_output = true, .forward_ns = 0, .backward_ns = 0}}),
      {.event_ns = 1, .standstills = {{20, 0}, {60, 10}}});
  const Link link{{1e7, 0}, {1e7, 0}};
  const Outcome two = outcome(step, with_setting({}, {StashUnit::kCopies, 2, 0}), link);
  const Outcome three = outcome(step, with_setting({}, {StashUnit::kCopies, 3, 0}), link);
  EXPECT_LT(two.time, three.time);
  EXPECT_GE(two.time, three.time - three.slack);
}

/// This property allows a sweep to rule out the stashes of bytes together with those of counts.
RC_GTEST_PROP(SettingSweepProperty, NoStashOfBytesGoesBelowTheEndsOfTheCounts, ()) {
  const StepProgram program = random_chain_beside_copies(15, kMostBytes);
  const Step step(program, random_costs(program));
  const Link link = random_link();
  const std::vector<Bytes> sizes = sizes_of(step);
  RC_PRE(!sizes.empty());
  const Bytes total = sum_of(sizes);
  const auto any = rc::gen::inRange<Bytes>(0, total + 1);
  const Outcome none = outcome(step, with_setting({}, {StashUnit::kCopies, 0, 0}), link);
  const Outcome some = outcome(step, with_setting({}, {StashUnit::kBytes, *any, *any}), link);
  const Outcome all = outcome(
      step, with_setting({}, {StashUnit::kCopies, static_cast<std::int64_t>(sizes.size()), total}), link);
  RC_ASSERT(none.least_peak <= some.least_peak);
  RC_ASSERT(some.time >= all.least_time - all.slack);
}

RC_GTEST_PROP(SettingSweepProperty, WithAnAimFindsTheBestOfTheWholeFrontier, ()) {
  const StepProgram program = random_chain_beside_copies(8, 20);
  const Step step(program, random_costs_but_waits(program));
  const Link link = random_link();
  const std::vector<Bytes> sizes = sizes_of(step);
  RC_PRE(!sizes.empty());
  const Frontier whole = swept(step, link);
  const Candidate& wanted = *rc::gen::elementOf(whole.candidates());
  Aim aim{wanted.predicted.device_peak_bytes, {}};
  if (*rc::gen::arbitrary<bool>()) aim = {{}, wanted.predicted.step_time_ns};
  const ReplayTree tree(step, link);
  Frontier frontier;
  frontier.add(whole.candidates().front());
  frontier.add(whole.candidates().back());
  SettingSweep sweep(tree, frontier, {.replays = kPlenty, .aim = aim});
  sweep.add_all({}, sizes);
  sweep.run();
  RC_ASSERT(sweep.is_complete());
  const Metrics& found = frontier.best(aim).predicted;
  if (aim.most_peak)
    RC_ASSERT(found.step_time_ns == wanted.predicted.step_time_ns);
  else
    RC_ASSERT(found.device_peak_bytes == wanted.predicted.device_peak_bytes);
}

RC_GTEST_PROP(SettingSweepProperty, NoSettingIsBetterThanTheFrontier, ()) {
  const StepProgram program = random_chain_beside_copies(6, 8);
  const Step step(program, random_costs(program));
  const Link link = random_link();
  const Frontier frontier = swept(step, link);
  const std::vector<Bytes> sizes = sizes_of(step);
  const Nanoseconds slack = slack_of_waits(step, static_cast<std::int64_t>(sizes.size()));
  const Bytes total = sum_of(sizes);
  for (const StashUnit unit : {StashUnit::kCopies, StashUnit::kBytes}) {
    const auto last = unit == StashUnit::kCopies ? static_cast<std::int64_t>(sizes.size()) : total;
    for (std::int64_t stash = 0; stash <= last; ++stash) {
      for (Bytes window = 0; window <= total; ++window) {
        const Outcome made = outcome(step, with_setting({}, {unit, stash, window}), link);
        if (!frontier.reaches(made.peak, made.time + slack))
          RC_FAIL(describe(with_setting({}, {unit, stash, window})));
      }
    }
  }
}

}  // namespace
}  // namespace offprof

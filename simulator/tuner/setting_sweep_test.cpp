#include "simulator/tuner/setting_sweep.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/schedule/random_policy.h"
#include "simulator/replay.h"
#include "simulator/tuner/random_step.h"

namespace offprof {
namespace {

constexpr std::size_t kPlenty = 1'000'000;

std::vector<Bytes> sizes_of(const Step& step) {
  std::vector<Bytes> sizes;
  for (const MovableVersion& version : movable_versions(step)) sizes.push_back(version.bytes);
  return sizes;
}

/// Sweeps every setting of all that may move.
Frontier swept(const Step& step, const Link& link, SettingSweep::Limits limits = {kPlenty}) {
  const ReplayTree tree(step, link);
  Frontier frontier;
  SettingSweep sweep(tree, frontier, limits);
  for (const SettingRange& range : setting_ranges({}, sizes_of(step))) sweep.add(range);
  sweep.run();
  return frontier;
}

TEST(SettingRanges, OfOneSizeACountSaysAll) {
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

TEST(SettingSweep, StopsAtItsLimitAndSaysSo) {
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

TEST(SettingSweep, SharingAndKeepingReplaysChangeNothingButTheEffort) {
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

// --- What the sweep relies on ---

struct Outcome {
  Bytes least_peak;
  Bytes peak;
  Nanoseconds least_time;
  Nanoseconds time;
};

Outcome outcome(const Step& step, const Policy& policy, const Link& link) {
  SpanListener listener(step, policy);
  const Metrics metrics = replay(step, policy, link, &listener).metrics;
  return {listener.least_peak(), *metrics.device_peak_bytes,
          LeastTime(step, link)(*metrics.step_time_ns, listener), *metrics.step_time_ns};
}

constexpr Bytes kMostBytes = 50;

/// Without what copies slow compute down by, where it does not hold.
EngineCosts random_costs() {
  EngineCosts costs{.hook_ns = *rc::gen::inRange(0, 5), .event_ns = *rc::gen::inRange(0, 5)};
  if (*rc::gen::arbitrary<bool>()) costs.standstills = {{20, *rc::gen::inRange(0, 10)}, {60, 10}};
  return costs;
}

RC_GTEST_PROP(SettingSweepProperty, MoreStashOrWindowTakesNoLessMemoryAndNoMoreTime, ()) {
  const Step step(random_chain(15, kMostBytes), random_costs());
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
  RC_ASSERT(low.time >= high.least_time);
}

RC_GTEST_PROP(SettingSweepProperty, NoSettingIsBetterThanTheFrontier, ()) {
  const Step step(random_chain(6, 8));
  const Link link = random_link();
  const Frontier frontier = swept(step, link);
  const std::vector<Bytes> sizes = sizes_of(step);
  Bytes total = 0;
  for (const Bytes bytes : sizes) total += bytes;
  for (const StashUnit unit : {StashUnit::kCopies, StashUnit::kBytes}) {
    const auto last = unit == StashUnit::kCopies ? static_cast<std::int64_t>(sizes.size()) : total;
    for (std::int64_t stash = 0; stash <= last; ++stash) {
      for (Bytes window = 0; window <= total; ++window) {
        const Outcome made = outcome(step, with_setting({}, {unit, stash, window}), link);
        if (!frontier.reaches(made.peak, made.time))
          RC_FAIL(describe(with_setting({}, {unit, stash, window})));
      }
    }
  }
}

}  // namespace
}  // namespace offprof

#include "profiler/recording/gpu_figures.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace offprof {
namespace {

using enum GpuMemoryKind;

StreamWork kernel(Nanoseconds begin, Nanoseconds end) {
  return {.begin_ns = begin, .end_ns = end};
}

StreamWork copy(GpuMemoryKind from, GpuMemoryKind to, Nanoseconds begin, Nanoseconds end, Bytes bytes = 1) {
  StreamWork work = {.kind = StreamWorkKind::kCopy, .from = from, .to = to, .begin_ns = begin, .end_ns = end};
  work.bytes = bytes;
  return work;
}

StreamWork copy_out(Nanoseconds begin, Nanoseconds end, Bytes bytes = 1) {
  return copy(kDevice, kPinned, begin, end, bytes);
}

StreamWork copy_in(Nanoseconds begin, Nanoseconds end, Bytes bytes = 1) {
  return copy(kPinned, kDevice, begin, end, bytes);
}

GpuFigures figures(std::vector<StreamWork> work, const Interval& step = {100, 200}) {
  GpuActivity activity;
  activity.work = std::move(work);
  return figures_of(activity, step);
}

TEST(GpuFigures, SplitAStepIntoComputeExposedCopiesAndIdleTime) {
  const GpuFigures found =
      figures({kernel(100, 130), kernel(120, 140), copy_out(130, 160), copy_in(150, 170)});
  EXPECT_EQ(found.compute_ns, 40);
  EXPECT_EQ(found.exposed_ns, 30);  // 140 to 170
  EXPECT_EQ(found.idle_ns, 30);
  EXPECT_EQ(found.d2h.busy_ns, 30);
  EXPECT_EQ(found.h2d.busy_ns, 20);
  EXPECT_DOUBLE_EQ(found.overlap_ratio().value(), 0.4);
}

TEST(GpuFigures, AreIdleForAStepWithoutWork) {
  GpuFigures idle;
  idle.idle_ns = 100;
  EXPECT_EQ(figures({}), idle);
  EXPECT_EQ(figures({kernel(0, 100), copy_in(200, 300)}), idle);
  EXPECT_EQ(idle.overlap_ratio(), std::nullopt);
}

TEST(GpuFigures, AreZeroForAnEmptyStep) {
  EXPECT_EQ(figures({kernel(0, 300)}, {100, 100}), GpuFigures{});
  EXPECT_EQ(figures({kernel(0, 300)}, {200, 100}), GpuFigures{});
}

TEST(GpuFigures, CountSetsAndCopiesWithinTheDeviceAsCompute) {
  StreamWork set = kernel(100, 110);
  set.kind = StreamWorkKind::kSet;
  EXPECT_EQ(figures({set, copy(kDevice, kArray, 120, 130), copy(kUnknown, kUnknown, 140, 150)}).compute_ns,
            30);
}

TEST(GpuFigures, GetTheDirectionFromTheEndOnTheHost) {
  const GpuFigures found = figures({copy(kDevice, kPageable, 100, 110), copy(kManaged, kPinned, 120, 130),
                                    copy(kPageable, kDevice, 140, 145), copy(kPinned, kUnknown, 150, 155)});
  EXPECT_EQ(found.d2h.busy_ns, 20);
  EXPECT_EQ(found.h2d.busy_ns, 10);
}

TEST(GpuFigures, LeaveOutCopiesWithinTheHost) {
  EXPECT_EQ(figures({copy(kPinned, kPageable, 100, 150)}).idle_ns, 100);
}

TEST(GpuFigures, CountWorkAsFarAsItOverlapsTheStep) {
  const GpuFigures found = figures({kernel(50, 110), copy_out(190, 250), copy_in(80, 120)});
  EXPECT_EQ(found.compute_ns, 10);
  EXPECT_EQ(found.d2h.busy_ns, 10);
  EXPECT_EQ(found.h2d.busy_ns, 20);
}

TEST(GpuFigures, CountACopyInTheStepInWhichItBegan) {
  const std::vector<StreamWork> work = {copy_out(190, 290, 1000)};
  const GpuFigures first = figures(work, {100, 200}), second = figures(work, {200, 300});
  EXPECT_EQ(first.d2h.bytes, 1000);
  EXPECT_EQ(first.d2h.copies_ns, 100);
  EXPECT_EQ(first.d2h.busy_ns, 10);
  EXPECT_EQ(second.d2h.bytes, 0);
  EXPECT_EQ(second.d2h.copies_ns, 0);
  EXPECT_EQ(second.d2h.busy_ns, 90);
}

TEST(GpuFigures, SeparateLargeCopies) {
  const GpuFigures found = figures(
      {copy_in(100, 110, kLargeCopy - 1), copy_in(120, 150, kLargeCopy), copy_in(140, 160, kLargeCopy + 5)});
  EXPECT_EQ(found.h2d.bytes, 3 * kLargeCopy + 4);
  EXPECT_EQ(found.h2d.copies_ns, 50);
  EXPECT_EQ(found.h2d.large_bytes, 2 * kLargeCopy + 5);
  EXPECT_EQ(found.h2d.large_copies_ns, 40);
}

constexpr Nanoseconds kEnd = 80;

std::vector<StreamWork> any_work() {
  const auto one = rc::gen::tuple(rc::gen::inRange(0, 3), rc::gen::inRange(0, 6), rc::gen::inRange(0, 6),
                                  rc::gen::inRange(0, 60), rc::gen::inRange(0, 20));
  std::vector<StreamWork> work;
  for (const auto& [kind, from, to, begin, length] :
       *rc::gen::container<std::vector<std::tuple<int, int, int, int, int>>>(one))
    work.push_back({.kind = static_cast<StreamWorkKind>(kind),
                    .from = static_cast<GpuMemoryKind>(from),
                    .to = static_cast<GpuMemoryKind>(to),
                    .begin_ns = begin,
                    .end_ns = begin + length,
                    .bytes = (begin % 3) * kLargeCopy});
  return work;
}

bool on_host(GpuMemoryKind kind) {
  return kind == kPageable || kind == kPinned;
}

bool copies_out(const StreamWork& work) {
  return work.kind == StreamWorkKind::kCopy && on_host(work.to) && !on_host(work.from);
}

bool copies_in(const StreamWork& work) {
  return work.kind == StreamWorkKind::kCopy && on_host(work.from) && !on_host(work.to);
}

bool computes(const StreamWork& work) {
  return work.kind != StreamWorkKind::kCopy || (!on_host(work.from) && !on_host(work.to));
}

/// Returns the number of nanoseconds from `begin` to `end` in which such work runs.
template <typename Pick>
Nanoseconds count(const std::vector<StreamWork>& work, Nanoseconds begin, Nanoseconds end, const Pick& pick) {
  Nanoseconds sum = 0;
  for (Nanoseconds now = begin; now < end; ++now)
    sum += std::ranges::any_of(
        work, [&](const StreamWork& one) { return pick(one) && one.begin_ns <= now && now < one.end_ns; });
  return sum;
}

void check_link(const LinkFigures& link, const std::vector<StreamWork>& work, const Interval& step,
                bool (*picks)(const StreamWork&)) {
  const auto begins_here = [&](const StreamWork& one) {
    return picks(one) && step.begin_ns <= one.begin_ns && one.begin_ns < step.end_ns;
  };
  const auto is_large = [&](const StreamWork& one) { return begins_here(one) && one.bytes >= kLargeCopy; };
  Bytes bytes = 0, large_bytes = 0;
  for (const StreamWork& one : work) {
    bytes += begins_here(one) ? one.bytes : 0;
    large_bytes += is_large(one) ? one.bytes : 0;
  }
  RC_ASSERT(link.busy_ns == count(work, step.begin_ns, step.end_ns, picks));
  RC_ASSERT(link.bytes == bytes);
  RC_ASSERT(link.copies_ns == count(work, 0, kEnd, begins_here));
  RC_ASSERT(link.large_bytes == large_bytes);
  RC_ASSERT(link.large_copies_ns == count(work, 0, kEnd, is_large));
}

RC_GTEST_PROP(GpuFigures, MatchACountOfEveryNanosecond, ()) {
  const std::vector<StreamWork> work = any_work();
  const Interval step = {*rc::gen::inRange(0, 40), *rc::gen::inRange(40, 80)};
  const GpuFigures found = figures(work, step);
  Nanoseconds exposed = 0;
  for (Nanoseconds now = step.begin_ns; now < step.end_ns; ++now)
    exposed += count(work, now, now + 1, computes) == 0 &&
               count(work, now, now + 1, copies_out) + count(work, now, now + 1, copies_in) > 0;
  RC_ASSERT(found.compute_ns == count(work, step.begin_ns, step.end_ns, computes));
  RC_ASSERT(found.exposed_ns == exposed);
  RC_ASSERT(found.compute_ns + found.exposed_ns + found.idle_ns == step.end_ns - step.begin_ns);
  check_link(found.d2h, work, step, copies_out);
  check_link(found.h2d, work, step, copies_in);
}

RC_GTEST_PROP(GpuFigures, AddUpOverThePartsOfAStep, ()) {
  const std::vector<StreamWork> work = any_work();
  const Nanoseconds middle = *rc::gen::inRange(1, 79);
  const GpuFigures whole = figures(work, {0, kEnd});
  const GpuFigures first = figures(work, {0, middle}), second = figures(work, {middle, kEnd});
  RC_ASSERT(whole.compute_ns == first.compute_ns + second.compute_ns);
  RC_ASSERT(whole.exposed_ns == first.exposed_ns + second.exposed_ns);
  RC_ASSERT(whole.idle_ns == first.idle_ns + second.idle_ns);
  RC_ASSERT(whole.d2h.busy_ns == first.d2h.busy_ns + second.d2h.busy_ns);
  RC_ASSERT(whole.h2d.bytes == first.h2d.bytes + second.h2d.bytes);
}

}  // namespace
}  // namespace offprof

#include "simulator/tuner/plans/plan_bound.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/tuner/plans/recompute_groups.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

/// Longer than any step in these tests.
constexpr Nanoseconds kVeryLong = 1'000'000;
constexpr Bytes kVeryMuch = 1'000'000;

/// A relaxation with all its inputs.
struct Relaxed {
  Relaxed(const StepProgram& program, const Link& link, std::optional<Bytes> host_memory = {},
          const EngineCosts& costs = {})
      : step(program, costs),
        versions(movable_versions(step)),
        least(least_memory_of(step, versions)),
        relaxation(step, link, versions, least, host_memory, recompute_times(program, versions)) {}

  Step step;
  std::vector<MovableVersion> versions;
  LeastMemory least;
  PlanRelaxation relaxation;
};

/// Two tensors of 100 bytes, with 100 ns of compute after each save and before each unpack.
StepProgram two_layers() {
  ProgramSketch sketch;
  std::vector<SavedId> saved;
  for (int i = 0; i < 2; ++i) {
    const std::int32_t x = sketch.alloc(100);
    saved.push_back(sketch.save(x));
    sketch.free(x);
    sketch.compute(100);
  }
  sketch.free(sketch.alloc(50));
  for (int i = 2; i-- > 0;) {
    sketch.compute(100);
    sketch.node(saved[static_cast<std::size_t>(i)]);
  }
  return sketch.program();
}

TEST(PlanBound, IsTheTimeOfKeepIfThereIsRoomForAll) {
  const Relaxed relaxed(two_layers(), {{1e9, 0}, {1e9, 0}});
  EXPECT_NEAR(relaxed.relaxation.least_time(250, kVeryLong).value, 400, 1e-3);
}

TEST(PlanBound, CopiesHiddenBehindComputeCostNothing) {
  const Relaxed relaxed(two_layers(), {{1e9, 0}, {1e9, 0}});
  EXPECT_NEAR(relaxed.relaxation.least_time(150, kVeryLong).value, 400, 1e-3);
}

TEST(PlanBound, CountsThePartOfCopiesThatIsNotHidden) {
  // A copy takes 1000 ns. One copy out must be done within the 100 ns from its tensor's save to the next
  // save, at which the tensor is dropped at the latest. One copy in must be done within the 200 ns after the
  // first unpack.
  const Relaxed relaxed(two_layers(), {{1e8, 0}, {1e8, 0}});
  const double bound = relaxed.relaxation.least_time(150, kVeryLong).value;
  EXPECT_GE(bound, 400 + 900 + 800);
}

TEST(PlanBound, TheLeastPeakWithoutExtraTimeIsThatOfKeep) {
  const Relaxed relaxed(two_layers(), {{1e6, 0}, {1e6, 0}});
  EXPECT_NEAR(relaxed.relaxation.least_peak(400, kVeryMuch).value, 250, 1);
}

TEST(PlanBound, TheLeastPeakWithTimeToSpareIsThatOfMovingAll) {
  const Relaxed relaxed(two_layers(), {{1e9, 0}, {1e9, 0}});
  EXPECT_NEAR(relaxed.relaxation.least_peak(kVeryLong, kVeryMuch).value,
              static_cast<double>(relaxed.least.peak), 1);
}

TEST(PlanBound, DoesNotExceedTheKnownValue) {
  const Relaxed relaxed(two_layers(), {{1e8, 0}, {1e8, 0}});
  EXPECT_LE(relaxed.relaxation.least_time(150, 1000).value, 1000);
}

TEST(PlanBound, AHostCapKeepsTensorsOnTheDevice) {
  const Relaxed relaxed(two_layers(), {{1e9, 0}, {1e9, 0}}, 100);
  EXPECT_GE(relaxed.relaxation.least_peak(kVeryLong, kVeryMuch).value, 149);
}

/// Recomputing a tensor in 30 ns makes room for it at once. Copies take far longer.
TEST(PlanBound, CountsTheTimeOfRecomputations) {
  StepProgram program = two_layers();
  Recomputation recomputation{0, "aten::op", {}, {{{100, -1}}, 30}};
  program.recomputations = {{recomputation}};
  const Relaxed relaxed(program, {{1e6, 0}, {1e6, 0}});
  EXPECT_NEAR(relaxed.relaxation.least_time(150, kVeryLong).value, 430, 1);
}

constexpr Bytes kMostBytes = 50;

StepProgram any_program() {
  StepProgram program = random_chain(15, kMostBytes);
  if (*rc::gen::arbitrary<bool>()) carry_tensors(program, kMostBytes);
  if (*rc::gen::arbitrary<bool>()) add_recomputations(program);
  return program;
}

/// Generates a policy that keeps, moves and, if the program has recompute steps, recomputes tensors.
Policy any_policy(const StepProgram& program) {
  Policy policy = *random_policy(SchedulerKind::kOffload, kMostBytes);
  if (!program.recomputations) return policy;
  PolicyRule& rule = policy.rules.emplace_back();
  rule.min_bytes = *rc::gen::inRange<Bytes>(0, kMostBytes);
  rule.placement.place = Place::kRecompute;
  return policy;
}

RC_GTEST_PROP(PlanBoundProperty, NoPolicyIsFasterWithinItsOwnPeak, ()) {
  const StepProgram program = any_program();
  const Link link = random_link();
  const Policy policy = any_policy(program);
  const Relaxed relaxed(program, link, policy.host_memory_bytes, random_costs_with_slowdown(program));
  const Metrics metrics = replay(relaxed.step, policy, link).metrics;
  const double bound = relaxed.relaxation.least_time(*metrics.device_peak_bytes, kVeryLong).value;
  RC_ASSERT(bound <= static_cast<double>(*metrics.step_time_ns) + 1e-3);
}

RC_GTEST_PROP(PlanBoundProperty, NoPolicyHasALowerPeakWithinItsOwnTime, ()) {
  const StepProgram program = any_program();
  const Link link = random_link();
  const Policy policy = any_policy(program);
  const Relaxed relaxed(program, link, policy.host_memory_bytes, random_costs_with_slowdown(program));
  const Metrics metrics = replay(relaxed.step, policy, link).metrics;
  const double bound = relaxed.relaxation.least_peak(*metrics.step_time_ns, kVeryMuch).value;
  RC_ASSERT(bound <= static_cast<double>(*metrics.device_peak_bytes) + 1e-3);
}

RC_GTEST_PROP(PlanBoundProperty, MoreMemoryNeverRaisesTheBound, ()) {
  const StepProgram program = random_chain(15, kMostBytes);
  const Link link = random_link();
  const Relaxed relaxed(program, link);
  const Bytes some = relaxed.least.peak + *rc::gen::inRange<Bytes>(0, 200);
  const Bytes more = some + *rc::gen::inRange<Bytes>(0, 200);
  // Rows that a solution violates by less than a millionth of the known value are left out, so each bound may
  // be too low by some of these.
  constexpr Nanoseconds kKnown = 10'000;
  constexpr double kRowTolerance = 1e-6 * static_cast<double>(kKnown);
  const double tight = relaxed.relaxation.least_time(some, kKnown).value;
  const double loose = relaxed.relaxation.least_time(more, kKnown).value;
  RC_ASSERT(loose <= tight * (1 + 1e-4) + 10 * kRowTolerance);
}

}  // namespace
}  // namespace offprof

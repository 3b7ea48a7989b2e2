#include "profiler/recording/program_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "simulator/replay/replay.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

/// Adds a saved tensor's pack, unpack and release, with that much compute before each.
StepProgram program_of(const std::vector<Nanoseconds>& compute_ns) {
  constexpr EventKind kKinds[] = {EventKind::kPack, EventKind::kUnpack, EventKind::kRelease};
  StepProgram program;
  program.storages = {{100, StorageRole::kActivation}};
  program.saved.resize(1);
  program.events.push_back({EventKind::kAlloc, 0, 0});
  for (std::size_t i = 0; i < compute_ns.size(); ++i) program.events.push_back({kKinds[i], 0, compute_ns[i]});
  program.events.push_back({EventKind::kFree, 0, 0});
  return program;
}

Nanoseconds sum_of(const StepProgram& program) {
  return std::accumulate(program.events.begin(), program.events.end(), Nanoseconds{0},
                         [](Nanoseconds sum, const Event& event) { return sum + event.compute_ns; });
}

Calibration measured(Nanoseconds step_ns, Nanoseconds hook_ns) {
  Calibration calibration;
  calibration.step.median_ns = step_ns;
  calibration.hook.median_ns = hook_ns;
  return calibration;
}

std::optional<double> fit_to_step(StepProgram& program, const Calibration& calibration) {
  return fit_to_compute(program, calibration, preset_policy("keep"), calibration.step.median_ns);
}

TEST(FitToCompute, MatchesTheStepWithoutItsHooks) {
  StepProgram program = program_of({100, 200, 300});
  EXPECT_DOUBLE_EQ(*fit_to_step(program, measured(570, 10)), 0.9);
  EXPECT_EQ(sum_of(program), 540);
  EXPECT_EQ(program.events[2].compute_ns, 180);
}

TEST(FitToCompute, SubtractsTheCostsOfThePolicy) {
  ProgramSketch sketch;
  const SavedId tensor = sketch.save(sketch.alloc(2 * kMiB));
  sketch.compute(1000);
  sketch.node(tensor);
  StepProgram program = sketch.program();
  Calibration calibration = measured(0, 0);
  calibration.d2h = calibration.h2d = {{0, {10, 10, 10}}, {kMiB, {20, 20, 20}}};
  calibration.command.median_ns = 30;  // one copy out, one in
  EXPECT_DOUBLE_EQ(*fit_to_compute(program, calibration, preset_policy("offload"), 1560), 1.5);
  EXPECT_EQ(sum_of(program), 1500);
}

TEST(FitToCompute, DoesNotChangeAProgramWithoutTimes) {
  StepProgram program = program_of({0, 0, 0});
  EXPECT_EQ(fit_to_step(program, measured(500, 1)), std::nullopt);
  EXPECT_EQ(sum_of(program), 0);
}

TEST(FitToCompute, DoesNotChangeTimesIfTheCostsExceedTheStep) {
  StepProgram program = program_of({100, 200, 300});
  EXPECT_EQ(fit_to_step(program, measured(570, 1000)), std::nullopt);
  EXPECT_EQ(sum_of(program), 600);
}

/// A step with its phases: 0 forward, 2 pack, 4 backward, 5 unpack, 7 end.
StepProgram program_with_phases() {
  StepProgram program;
  program.names = {"forward", "backward", "end", "op"};
  program.storages = {{100, StorageRole::kActivation}};
  program.saved.resize(1);
  program.compute_spread_ns.assign(8, 1);
  program.events = {{EventKind::kPhase, 0, 5},   {EventKind::kAlloc, 0, 30}, {EventKind::kPack, 0, 70},
                    {EventKind::kOpEnd, 3, 10},  {EventKind::kPhase, 1, 10}, {EventKind::kUnpack, 0, 0},
                    {EventKind::kRelease, 0, 4}, {EventKind::kPhase, 2, 16}};
  return program;
}

/// Returns the marks of a step whose stretches took these times on the stream and the host.
StepMarks marks_of(const std::vector<Nanoseconds>& stream, const std::vector<Nanoseconds>& host) {
  StepMarks marks = {{EventKind::kPhase, -1, 1000, 7000},
                     {EventKind::kPack, 0},
                     {EventKind::kPhase, -1},
                     {EventKind::kUnpack, 0},
                     {EventKind::kPhase, -1}};
  for (std::size_t i = 1; i < marks.size(); ++i) {
    marks[i].stream_ns = marks[i - 1].stream_ns + stream[i - 1];
    marks[i].host_ns = marks[i - 1].host_ns + host[i - 1];
  }
  return marks;
}

std::vector<Nanoseconds> compute_of(const StepProgram& program) {
  std::vector<Nanoseconds> times;
  for (const Event& event : program.events) times.push_back(event.compute_ns);
  return times;
}

using testing::ElementsAre;

TEST(SetMarkedTimes, DistributesTheMedianOfEachStretchWithoutItsHooks) {
  StepProgram program = program_with_phases();
  std::vector<StepMarks> passes;
  for (const Nanoseconds forward : {52, 50, 99})
    passes.push_back(marks_of({forward, 8, 3, 14}, {forward, 8, 3, 14}));
  ASSERT_TRUE(set_marked_times(program, passes, /*hook_ns=*/2, ComputesOn::kHost));
  // A pack in the first stretch, an unpack in the third, a release in the fourth.
  EXPECT_THAT(compute_of(program), ElementsAre(5, 15, 35, 4, 4, 1, 2, 10));
  EXPECT_THAT(program.compute_spread_ns, ElementsAre(1, 0, 49, 0, 0, 0, 0, 0));
  EXPECT_TRUE(program.work.empty());
}

TEST(SetMarkedTimes, SetsTheWorkOfHostAndStreamOnADevice) {
  StepProgram program = program_with_phases();
  ASSERT_TRUE(set_marked_times(program, {marks_of({50, 8, 3, 14}, {22, 10, 5, 14})}, /*hook_ns=*/2,
                               ComputesOn::kDevice));
  EXPECT_THAT(compute_of(program), ElementsAre(5, 15, 35, 4, 4, 3, 3, 11));
  Work forward;
  for (const std::size_t i : {1, 2}) forward = then(forward, program.work[i]);
  EXPECT_EQ(forward, (Work{20, 50, 50, Work::kNoWait, 50}));
  Work after;
  for (const std::size_t i : {3, 4}) after = then(after, program.work[i]);
  EXPECT_EQ(after, (Work{10, 8, 10, Work::kNoWait, 8}));
}

TEST(SetMarkedTimes, AReplayMatchesTheMarkedStep) {
  StepProgram program = program_with_phases();
  const std::vector<Nanoseconds> stream = {50, 8, 3, 14}, host = {22, 10, 5, 14};
  ASSERT_TRUE(set_marked_times(program, {marks_of(stream, host)}, 0, ComputesOn::kDevice));
  const Metrics metrics = replay(Step(program), preset_policy("keep"), {}).metrics;
  EXPECT_EQ(metrics.step_time_ns, 5 + 50 + 8 + 3 + 14);  // the host is ahead all the time
}

TEST(SetMarkedTimes, ChangesNothingIfTheMarksBelongToAnotherStep) {
  StepProgram program = program_with_phases();
  StepMarks marks = marks_of({50, 8, 3, 14}, {50, 8, 3, 14});
  marks[3].tensor = 1;
  EXPECT_FALSE(set_marked_times(program, {marks}, 0, ComputesOn::kDevice));
  marks.pop_back();
  EXPECT_FALSE(set_marked_times(program, {marks}, 0, ComputesOn::kHost));
  EXPECT_FALSE(set_marked_times(program, {}, 0, ComputesOn::kHost));
  EXPECT_EQ(program, program_with_phases());
}

TEST(FitToPhases, EachPhaseTakesItsMeasuredTime) {
  StepProgram program = program_with_phases();
  Calibration calibration = measured(250, 10);
  calibration.phases = {{"forward", {70, 70, 70}}, {"backward", {180, 180, 180}}};
  // Forward: 120 recorded, 60 without its hook. Backward: 20 recorded, 160 without its two.
  EXPECT_DOUBLE_EQ(*fit_to_phases(program, calibration), 8);
  EXPECT_THAT(compute_of(program), ElementsAre(5, 15, 35, 5, 5, 0, 32, 128));
  EXPECT_DOUBLE_EQ(*fit_to_step(program, calibration), 220.0 / 225);  // 5 before forward are in no phase
}

TEST(FitToPhases, DoesNotChangeAProgramWithOtherPhases) {
  StepProgram program = program_with_phases();
  Calibration calibration = measured(250, 10);
  EXPECT_EQ(fit_to_phases(program, calibration), std::nullopt);
  calibration.phases = {{"backward", {180, 180, 180}}};
  EXPECT_EQ(fit_to_phases(program, calibration), std::nullopt);
  EXPECT_EQ(program, program_with_phases());
}

TEST(FitToCompute, MatchesTheStepOnADeviceWhetherHostOrStreamIsBehind) {
  for (const std::vector<Nanoseconds>& host :
       {std::vector<Nanoseconds>{2200, 1000, 500, 1400}, std::vector<Nanoseconds>{9000, 9000, 9000, 9000}}) {
    StepProgram program = program_with_phases();
    std::vector<Nanoseconds> stream = {5000, 800, 300, 1400};
    if (host[0] == 9000) stream = host;  // the stream waits for the host
    ASSERT_TRUE(set_marked_times(program, {marks_of(stream, host)}, 100, ComputesOn::kDevice));
    Calibration calibration = measured(6'000, 100);
    ASSERT_TRUE(fit_to_step(program, calibration));
    const Step step(program, costs_of(calibration));
    EXPECT_NEAR(static_cast<double>(*replay(step, preset_policy("keep"), {}).metrics.step_time_ns), 6'000, 5);
  }
}

TEST(AssumeWork, UsesTheHostTimeRatioOfTheMarkedProgram) {
  StepProgram marked = program_with_phases(), other = program_with_phases();
  marked.work.assign(8, {30, 60, 60, Work::kNoWait, 60});
  assume_work(other, marked);
  EXPECT_EQ(other.work[2], (Work{35, 70, 70, Work::kNoWait, 70}));
  assume_host_ahead(other);
  EXPECT_EQ(other.work[2], (Work{0, 70, 70, Work::kNoWait, 70}));
}

TEST(ReloadCost, IsTheTimeThatTheReplayDoesNotExplain) {
  ProgramSketch sketch;
  const SavedId tensor = sketch.save(sketch.alloc(2 * kMiB));
  sketch.compute(1000);
  sketch.node(tensor);
  Calibration calibration = measured(1000, 0);
  calibration.d2h = calibration.h2d = {{0, {10, 10, 10}}, {kMiB, {20, 20, 20}}};
  EXPECT_EQ(reload_cost(sketch.program(), calibration, {500, 400, 900}), (MeasuredQuartiles{250, 200, 450}));
  EXPECT_EQ(reload_cost(sketch.program(), calibration, {-100}), MeasuredQuartiles{});
  EXPECT_EQ(reload_cost(StepProgram{}, calibration, {500}), MeasuredQuartiles{});
}

}  // namespace
}  // namespace offprof

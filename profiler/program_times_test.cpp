#include "profiler/program_times.h"

#include <gtest/gtest.h>

#include <numeric>

#include "simulator/sample_program.h"

namespace offprof {
namespace {

/// A saved tensor's pack, unpack and release, with that much compute before each.
Program program_of(const std::vector<Nanoseconds>& compute_ns) {
  constexpr EventKind kKinds[] = {EventKind::kPack, EventKind::kUnpack, EventKind::kRelease};
  Program program;
  program.storages = {{100, StorageRole::kActivation}};
  program.saved.resize(1);
  program.events.push_back({EventKind::kAlloc, 0, 0});
  for (std::size_t i = 0; i < compute_ns.size(); ++i) program.events.push_back({kKinds[i], 0, compute_ns[i]});
  program.events.push_back({EventKind::kFree, 0, 0});
  return program;
}

Nanoseconds sum_of(const Program& program) {
  return std::accumulate(program.events.begin(), program.events.end(), Nanoseconds{0},
                         [](Nanoseconds sum, const Event& event) { return sum + event.compute_ns; });
}

Calibration measured(Nanoseconds step_ns, Nanoseconds hook_ns) {
  Calibration calibration;
  calibration.step.median_ns = step_ns;
  calibration.hook.median_ns = hook_ns;
  return calibration;
}

std::optional<double> fit_to_step(Program& program, const Calibration& calibration) {
  return fit_to_compute(program, calibration, preset_policy("keep"), calibration.step.median_ns);
}

TEST(FitToCompute, ComesToTheStepLessItsHooks) {
  Program program = program_of({100, 200, 300});
  EXPECT_DOUBLE_EQ(*fit_to_step(program, measured(570, 10)), 0.9);
  EXPECT_EQ(sum_of(program), 540);
  EXPECT_EQ(program.events[2].compute_ns, 180);
}

TEST(FitToCompute, TakesOutWhatThePolicyCosts) {
  ProgramSketch sketch;
  const SavedId tensor = sketch.save(sketch.alloc(2 * kMiB));
  sketch.compute(1000);
  sketch.node(tensor);
  Program program = sketch.program();
  Calibration calibration = measured(0, 0);
  calibration.d2h = calibration.h2d = {{0, {10, 10, 10}}, {kMiB, {20, 20, 20}}};
  calibration.command.median_ns = 30;  // one copy out, one in
  EXPECT_DOUBLE_EQ(*fit_to_compute(program, calibration, preset_policy("offload"), 1560), 1.5);
  EXPECT_EQ(sum_of(program), 1500);
}

TEST(FitToCompute, LeavesAProgramWithoutTimesAlone) {
  Program program = program_of({0, 0, 0});
  EXPECT_EQ(fit_to_step(program, measured(500, 1)), std::nullopt);
  EXPECT_EQ(sum_of(program), 0);
}

TEST(FitToCompute, LeavesTimesAloneWhereTheCostsAreMoreThanTheStep) {
  Program program = program_of({100, 200, 300});
  EXPECT_EQ(fit_to_step(program, measured(570, 1000)), std::nullopt);
  EXPECT_EQ(sum_of(program), 600);
}

TEST(ReloadCost, IsWhatTheReplayDoesNotExplain) {
  ProgramSketch sketch;
  const SavedId tensor = sketch.save(sketch.alloc(2 * kMiB));
  sketch.compute(1000);
  sketch.node(tensor);
  Calibration calibration = measured(1000, 0);
  calibration.d2h = calibration.h2d = {{0, {10, 10, 10}}, {kMiB, {20, 20, 20}}};
  EXPECT_EQ(reload_cost(sketch.program(), calibration, {500, 400, 900}), (Measured{250, 200, 450}));
  EXPECT_EQ(reload_cost(sketch.program(), calibration, {-100}), Measured{});
  EXPECT_EQ(reload_cost(Program{}, calibration, {500}), Measured{});
}

}  // namespace
}  // namespace offprof

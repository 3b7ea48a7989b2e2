// Tests calibration, fit and replay on a machine in which every operation takes exactly its specified time.
#include <gmock/gmock.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include <optional>

#include "engine/models/archives/build.h"
#include "profiler/calibration/brief_calibration.h"
#include "profiler/calibration/cost_calibration.h"
#include "profiler/calibration/disturbed_step.h"
#include "profiler/recorder/marking_listener.h"
#include "profiler/recording/program_builder.h"
#include "profiler/recording/program_times.h"
#include "profiler/training/trainer.h"
#include "simulator/replay/replay.h"
#include "tests/conformance/clockwork_device.h"
#include "tests/support/test_folder.h"
#include "tests/support/torch_test.h"

namespace offprof {
namespace {

/// Copies take about as long as the compute between them, so that some of them cause stalls.
KnownCosts known_costs() {
  KnownCosts costs;
  costs.op_ns_per_letter = 700;
  costs.launch_ns = 2'300;
  costs.enqueue_ns = 870;
  costs.event_ns = 450;
  costs.start_ns = 5'100;
  costs.out = {9'000, 100};
  costs.in = {11'000, 130};
  return costs;
}

class KnownCostsTest : public TorchTest {
 protected:
  KnownCostsTest() {
    torch::jit::setGraphExecutorOptimize(false);  // as run_job does
    torch::jit::getProfilingMode() = false;
  }

  void open(const KnownCosts& costs) {
    clockwork_.emplace(device_, costs);
    const std::string path = folder_ / "model.pt";
    save_zoo_model("mlp", {{"batch", 64}, {"inputs", 64}, {"layers", 6}, {"width", 64}}, kSeed, path);
    model_ = load_model(path);
    make_inputs(*model_, input_specs_in_archive(path));
    trainer_.emplace(*model_, *clockwork_, RunSettings{});
    trainer_->plain_step();
  }
  void TearDown() override {
    trainer_.reset();
    model_.reset();
    clockwork_.reset();
  }

  /// Records the passes while operators take three times as long, since recording takes time.
  void record() {
    constexpr Nanoseconds kWhileRecorded = 3;
    const auto pass = [&](const char* policy) {
      return trainer_->step(preset_policy(policy), {}, Recording::kProgram).recording;
    };
    clockwork_->slow_down(kWhileRecorded);
    const RecordedPass keep[] = {pass("keep"), pass("keep")};
    const RecordedPass offload = pass("offload");
    clockwork_->slow_down(1);
    program_ = build_program(keep, offload);
    order_ = backward_order(program_);
  }

  /// Calibrates and fits as a run does.
  void calibrate_and_fit() {
    const CopyCalibration copies = calibrate_copies(*clockwork_);
    const StepCalibration measured =
        carry_out(calibrate(*clockwork_, copies, 2 * program_.saved.size(), order_),
                  [&](const StepOrder& order) { return trainer_->run(order); });
    calibration_ = measured.costs;
    fit_to_compute(program_, calibration_, preset_policy("keep"), calibration_.step.median_ns);
    calibration_.reload_per_mib = reload_cost(program_, calibration_, measured.offloaded_extra_ns);
  }

  StepResult measured(const Policy& policy) { return trainer_->step(policy, order_, Recording::kNone); }
  Metrics predicted(const Policy& policy) const {
    return replay(Step(program_, costs_of(calibration_)), policy, link_of(calibration_)).metrics;
  }

  TestFolder folder_;
  std::optional<ClockworkDevice> clockwork_;
  std::optional<Model> model_;
  std::optional<Trainer> trainer_;
  StepProgram program_;
  std::vector<SavedId> order_;
  Calibration calibration_;
};

TEST_F(KnownCostsTest, CalibrationFindsTheKnownCosts) {
  const KnownCosts costs = known_costs();
  open(costs);
  record();
  calibrate_and_fit();
  const auto exactly = [](Nanoseconds time) { return MeasuredQuartiles{time, time, time}; };
  constexpr Nanoseconds kLinesOfAMib = kMiB / KnownCosts::kLine;
  EXPECT_EQ(calibration_.command, exactly(costs.launch_ns + costs.enqueue_ns));
  EXPECT_EQ(calibration_.event, exactly(costs.event_ns));
  EXPECT_EQ(calibration_.start, exactly(costs.start_ns));
  EXPECT_EQ(calibration_.hook, exactly(0));
  EXPECT_EQ(calibration_.d2h.front().duration, exactly(costs.out.latency_ns));
  EXPECT_EQ(calibration_.h2d.front().duration, exactly(costs.in.latency_ns));
  EXPECT_EQ(calibration_.copy_out_per_mib, exactly(kLinesOfAMib * costs.out.ns_per_line));
  EXPECT_EQ(calibration_.copy_in_per_mib, exactly(kLinesOfAMib * costs.in.ns_per_line));
  EXPECT_EQ(calibration_.step, exactly(measured(preset_policy("keep")).step_time_ns));
  EXPECT_EQ(calibration_.slowdown_per_mib, exactly(0));
  EXPECT_EQ(calibration_.reload_per_mib, exactly(0));
  for (const StandstillTiming& standstill : calibration_.standstills)
    EXPECT_EQ(standstill.lost, exactly(0)) << standstill.stood_ns;
}

TEST_F(KnownCostsTest, PredictsTheTimesOfStepsExactly) {
  open(known_costs());
  record();
  calibrate_and_fit();
  const std::vector<Policy> policies = {preset_policy("keep"),
                                        preset_policy("offload"),
                                        test_policy("offload", 0, 0),
                                        test_policy("offload", 0, 1),
                                        test_policy("offload", 0, 3, 1 << 14),
                                        test_policy("offload", 20'000, 2, 1 << 16)};
  Nanoseconds exposed = 0;
  for (const Policy& policy : policies) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    const StepResult step = measured(policy);
    const Metrics metrics = predicted(policy);
    EXPECT_EQ(metrics.step_time_ns, step.step_time_ns);
    EXPECT_EQ(metrics.exposed_ns, step.exposed_ns);
    exposed += step.exposed_ns;
  }
  EXPECT_GT(exposed, 0) << "no policy had anything to wait for";
}

TEST_F(KnownCostsTest, ABriefCalibrationFindsTheKnownCostsAndPredictsTimesToAThousandth) {
  const KnownCosts costs = known_costs();
  open(costs);
  record();
  const BriefCalibration brief =
      carry_out(calibrate_briefly(*clockwork_, calibrate_copies(*clockwork_),
                                  {.offloaded = 3, .marked = 3, .disturbed = 1}, order_),
                [&](const StepOrder& order) { return trainer_->run(order); });
  calibration_ = brief.step.costs;
  ASSERT_TRUE(set_marked_times(program_, brief.marks, calibration_.hook.median_ns, ComputesOn::kHost));
  fit_to_compute(program_, calibration_, preset_policy("keep"), calibration_.step.median_ns);
  calibration_.reload_per_mib = reload_cost(program_, calibration_, brief.step.offloaded_extra_ns);
  constexpr Nanoseconds kLinesOfAMib = kMiB / KnownCosts::kLine;
  EXPECT_EQ(calibration_.command.median_ns, costs.launch_ns + costs.enqueue_ns);
  EXPECT_EQ(calibration_.copy_out_per_mib.median_ns, kLinesOfAMib * costs.out.ns_per_line);
  EXPECT_EQ(calibration_.copy_in_per_mib.median_ns, kLinesOfAMib * costs.in.ns_per_line);
  EXPECT_EQ(calibration_.slowdown_per_mib.median_ns, 0);
  EXPECT_EQ(calibration_.standstills.size(), 2U);
  for (const char* name : {"keep", "offload"}) {
    const auto expected = static_cast<double>(measured(preset_policy(name)).step_time_ns);
    EXPECT_NEAR(static_cast<double>(*predicted(preset_policy(name)).step_time_ns), expected, expected / 1000)
        << name;
  }
}

/// Marks are as dear as on a GPU, where they are events: marked steps take twice as long, and the first plain
/// one three times.
TEST_F(KnownCostsTest, PlainStepsButTheFirstGiveABriefCalibrationItsTimes) {
  open(known_costs());
  record();
  int plain = 0;
  const auto run = [&](const StepOrder& order) {
    StepResult step = trainer_->run(order);
    const bool is_plain = order.recording == Recording::kNone && order.listener == nullptr &&
                          order.policy == preset_policy("keep");
    if (order.recording == Recording::kMarks) step.step_time_ns *= 2;
    if (is_plain && plain++ == 0) step.step_time_ns *= 3;
    return step;
  };
  const BriefCalibration brief =
      carry_out(calibrate_briefly(*clockwork_, calibrate_copies(*clockwork_),
                                  {.offloaded = 1, .plain = 3, .marked = 1, .disturbed = 1}, order_),
                run);
  const Nanoseconds expected = measured(preset_policy("keep")).step_time_ns;
  EXPECT_EQ(brief.step.costs.step, (MeasuredQuartiles{expected, expected, expected}));
  EXPECT_EQ(plain, 3);
  EXPECT_EQ(brief.marks.size(), 1U);
}

/// Each stretch takes 100 ns longer than usual, whatever disturbs it.
TEST_F(KnownCostsTest, ADisturbedStepFindsTheLossOfEachDisturbance) {
  constexpr Nanoseconds kLoss = 100, kStep = 1'000'000;
  constexpr int kHooks = 30;  // fifteen blocks of two
  open(known_costs());
  const Link link{{1e9, 0, 0}, {1e9, 0, 0}};
  const auto run = [&](StepListener& listener) {
    clockwork_->forget_marks();
    for (SavedId hook = 0; hook < kHooks; ++hook) {
      listener.on_unpack(hook);
      at::ones({8}).tanh();
    }
    clockwork_->synchronize();
  };
  MarkingListener marks(*clockwork_);
  run(marks);
  std::vector<Nanoseconds> usual = usual_stretches({marks.take()});
  ASSERT_EQ(usual.size(), kHooks - 1U);
  for (Nanoseconds& stretch : usual) stretch -= kLoss;
  DisturbedStep step(*clockwork_, link, usual, kStep);
  step.on_step_begin();
  run(step);
  Calibration found;
  step.add_losses(found);
  const double mib = static_cast<double>(bytes_beside(link, kStep, kHooks)) / kMiB;
  EXPECT_EQ(found.slowdown_per_mib.median_ns, static_cast<Nanoseconds>(kLoss / mib));
  ASSERT_EQ(found.standstills.size(), 2U);
  EXPECT_EQ(found.standstills.front().lost.median_ns, kLoss);
  EXPECT_EQ(found.standstills.back().lost.median_ns, 2 * kLoss);
}

TEST_F(KnownCostsTest, ADisturbedStepWithOtherHooksThanUsualFindsNothing) {
  open(known_costs());
  DisturbedStep step(*clockwork_, Link{{1e9, 0, 0}, {1e9, 0, 0}}, {1000, 1000}, 1'000'000);
  step.on_unpack(0);
  Calibration found;
  step.add_losses(found);
  EXPECT_EQ(found, Calibration());
}

/// On this machine only packing costs time, but calibration distributes it over pack, unpack and release. For
/// a step that keeps everything the sum is the same.
TEST_F(KnownCostsTest, AStepThatKeepsEverythingIncludesItsHooks) {
  KnownCosts costs = known_costs();
  costs.hook_ns = 3 * 640;
  open(costs);
  record();
  calibrate_and_fit();
  EXPECT_EQ(calibration_.hook.median_ns, 640);
  EXPECT_EQ(predicted(preset_policy("keep")).step_time_ns, measured(preset_policy("keep")).step_time_ns);
}

}  // namespace
}  // namespace offprof

#include "profiler/script/script_session.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/steps/trace_steps.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

const Progress kQuietly = [](const std::string&) {};

/// A program that runs its own steps: two matrix products and a hand-written optimizer.
class Program {
 public:
  /// Runs one step on so many rows.
  void step(ScriptSession& session, std::int64_t rows) {
    const at::Tensor hidden = at::mm(at::ones({rows, 8}), weight_).tanh();
    const at::Tensor loss = at::mm(hidden, weight_).sigmoid().mean();
    session.begin_phase(ScriptPhase::kBackward);
    loss.backward();
    session.end_backward();
    session.begin_phase(ScriptPhase::kOptimizer);
    const at::NoGradGuard no_grad;
    weight_.sub_(weight_.grad(), 0.1);
    weight_.mutable_grad() = at::Tensor();
  }
  ProgramTensors tensors() const { return {{weight_}, {}}; }

 private:
  at::Tensor weight_ = at::ones({8, 8}).set_requires_grad(true);
};

class ScriptSessionTest : public TorchTest {
 protected:
  static ScriptRequest request(const std::string& policy) {
    ScriptRequest request;
    request.run.model_path = "train.py";
    request.run.policy = preset_policy(policy);
    request.run.settings.steps = 2;
    return request;
  }

  /// Runs steps until everything is recorded. `rows_of` returns the rows of a step by its number.
  void record(ScriptSession& session, const std::function<std::int64_t(int)>& rows_of) {
    for (int i = 0; session.begin_step(program_.tensors()); ++i) program_.step(session, rows_of(i));
  }

  Program program_;
};

TEST_F(ScriptSessionTest, MeasuresStepsAsAReplayOfTheirRecordingPredicts) {
  ScriptRequest asked = request("offload");
  asked.compared = {preset_policy("keep"), preset_policy("trl")};
  ScriptSession session(asked, device_, kQuietly);
  record(session, [](int) { return 16; });
  ASSERT_TRUE(session.is_recorded());
  const Trace& trace = session.result().trace;
  const TraceSteps steps(trace);
  const auto expect_exact = [&](const Policy& policy, const Metrics& measured) {
    const Metrics predicted = steps.predict(policy, trace.environment.link);
    EXPECT_EQ(measured.device_peak_bytes, predicted.device_peak_bytes) << policy.name;
    EXPECT_EQ(measured.host_peak_bytes, predicted.host_peak_bytes) << policy.name;
    EXPECT_EQ(measured.h2d_bytes, predicted.h2d_bytes) << policy.name;
  };
  expect_exact(trace.policy, trace.metrics);
  EXPECT_GT(trace.metrics.d2h_bytes, 0);
  ASSERT_EQ(session.compared().size(), 2U);
  for (const ComparedMeasurement& compared : session.compared())
    expect_exact(compared.policy, compared.measured);
}

TEST_F(ScriptSessionTest, SkipsStepsThatAreUnlikeTheRecordedOnes) {
  ScriptSession session(request("keep"), device_, kQuietly);
  record(session, [](int i) { return i % 4 == 3 ? 32 : 16; });
  EXPECT_THAT(session.groups(),
              ElementsAre(AllOf(Field(&StepGroup::steps, 5), Field(&StepGroup::is_recorded, true)),
                          Field(&StepGroup::steps, 1)));
  EXPECT_GT(session.skipped_steps(), 0);
  const Trace& trace = session.result().trace;
  EXPECT_EQ(trace.metrics.device_peak_bytes,
            TraceSteps(trace).predict(trace.policy, trace.environment.link).device_peak_bytes);
}

TEST_F(ScriptSessionTest, RefusesAProgramWhoseStepsAllDiffer) {
  ScriptRequest asked = request("keep");
  asked.patience_steps = 6;
  ScriptSession session(asked, device_, kQuietly);
  EXPECT_THAT([&] { record(session, [](int i) { return 16 + i; }); },
              testing::ThrowsMessage<Error>(HasSubstr("of 6 steps, at most 1 are alike")));
  session.abandon_step();
}

TEST_F(ScriptSessionTest, NotesMemoryThatTheProgramKeepsFromEachStep) {
  ScriptSession session(request("keep"), device_, kQuietly);
  std::vector<at::Tensor> kept;
  record(session, [&](int) {
    kept.push_back(at::ones({256}));
    return 16;
  });
  EXPECT_THAT(session.result().trace.notes, Contains(HasSubstr("the program keeps 1.00 KiB more")));
}

TEST_F(ScriptSessionTest, RunsFurtherStepsUnderAPolicyWithoutRecordingThem) {
  ScriptSession session(request("keep"), device_, kQuietly);
  record(session, [](int) { return 16; });
  const std::int64_t before = session.steps();
  device_.take_copy_records();
  session.begin_unrecorded_step(preset_policy("offload"), program_.tensors());
  program_.step(session, 16);
  session.end_step();
  device_.synchronize();
  EXPECT_FALSE(device_.take_copy_records().empty());
  EXPECT_EQ(session.steps(), before);
}

TEST_F(ScriptSessionTest, RefusesAProgramWhoseParametersAreElsewhere) {
  ScriptSession session(request("keep"), device_, kQuietly);
  std::vector<float> memory(64);
  const ProgramTensors elsewhere{{at::from_blob(memory.data(), {8, 8}).set_requires_grad(true)}, {}};
  session.begin_step(elsewhere);  // warms up
  EXPECT_THAT([&] { session.begin_step(elsewhere); },
              testing::ThrowsMessage<Error>(HasSubstr("not in the memory of the device")));
}

}  // namespace
}  // namespace offprof

#include "profiler/script/script_session.h"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
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
  /// Returns a tensor whose graph saves tensors.
  at::Tensor saving_a_tensor() { return at::mm(at::ones({4, 8}), weight_).tanh(); }
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
    request.run.settings.warmup = 2;  // the step before the first begin_step, and one more
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
  record(session, [](int i) { return i % 4 == 1 ? 32 : 16; });
  EXPECT_THAT(session.groups(),
              ElementsAre(AllOf(Field(&StepGroup::steps, 2), Field(&StepGroup::is_recorded, true)),
                          Field(&StepGroup::steps, 1)));
  EXPECT_GT(session.skipped_steps(), 0);
  const Trace& trace = session.result().trace;
  EXPECT_TRUE(trace.steps_differ);
  EXPECT_EQ(trace.metrics.device_peak_bytes,
            TraceSteps(trace).predict(trace.policy, trace.environment.link).device_peak_bytes);
}

TEST_F(ScriptSessionTest, MeasuresNoOffloadedStepThatAllocatesMoreThanTheRecordedOnes) {
  for (const int evaluated : {0, 1}) {  // whichever the first measured step is
    ScriptSession session(request("offload"), device_, kQuietly);
    record(session, [&](int i) {
      if (i % 2 == evaluated) at::ones({1 << 20});  // as an evaluation every second step
      return 16;
    });
    EXPECT_GT(session.skipped_steps(), 0);
    const Trace& trace = session.result().trace;
    EXPECT_EQ(trace.metrics.device_peak_bytes,
              TraceSteps(trace).predict(trace.policy, trace.environment.link).device_peak_bytes);
  }
}

TEST_F(ScriptSessionTest, FindsRecomputeStepsOfAProgram) {
  ScriptRequest asked = request("keep");
  asked.run.transforms = {"recompute"};
  ScriptSession session(asked, device_, kQuietly);
  record(session, [](int) { return 16; });
  EXPECT_EQ(session.skipped_steps(), 0);
  EXPECT_FALSE(session.result().trace.steps_differ);
  ASSERT_TRUE(session.result().trace.program.recomputations.has_value());
  EXPECT_FALSE(session.result().trace.program.recomputations->empty());
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
  EXPECT_THAT(session.result().trace.notes,
              Contains(HasSubstr("the program keeps 1.00 KiB more with most steps (aten::ones in forward)")));
  const Trace& trace = session.result().trace;
  EXPECT_EQ(trace.program.resident_bytes, trace.metrics.device_resident_bytes);
}

TEST_F(ScriptSessionTest, DoesNotFollowMemoryThatGrowsInSomeStepsOnly) {
  ScriptSession session(request("keep"), device_, kQuietly);
  std::vector<at::Tensor> kept;
  record(session, [&](int i) {
    if (i % 4 != 0) kept.push_back(at::ones({256}));
    return 16;
  });
  EXPECT_THAT(session.result().trace.notes, Contains(HasSubstr("assume that this does not grow")));
}

TEST_F(ScriptSessionTest, TakesAtMostFifteenStepsAndSaysHowManyAreLeft) {
  ScriptRequest asked = request("offload");
  asked.has_default_steps = true;
  asked.run.settings.warmup = 1;
  std::vector<std::string> progress;
  ScriptSession session(asked, device_, [&](const std::string& what) { progress.push_back(what); });
  program_.step(session, 16);  // the program's first step, after which its steps are known
  record(session, [](int) { return 16; });
  EXPECT_TRUE(session.is_recorded());
  EXPECT_LE(session.steps(), 15);
  EXPECT_EQ(session.skipped_steps(), 0);
  EXPECT_THAT(progress.front(), HasSubstr("recording with nothing offloaded: at most 14 steps left"));
}

/// The program looks up its modules under a lock that stands for Python's. Another thread holds that lock
/// while it frees an earlier graph of the step, as Python's garbage collection does.
TEST_F(ScriptSessionTest, LooksUpAModuleWhileAnotherThreadFreesAGraphOfTheStep) {
  std::timed_mutex python;
  std::promise<void> is_held, is_looking_up;
  bool is_armed = false, was_free = false;
  ScriptSession session(request("keep"), device_, kQuietly, nullptr, [&] {
    if (std::exchange(is_armed, false)) {
      is_looking_up.set_value();
      was_free = python.try_lock_for(std::chrono::seconds(30));  // a deadlock, but for this limit
      if (was_free) python.unlock();
    }
    return CodeLocation{};
  });
  session.begin_step(program_.tensors());  // warms up
  session.begin_step(program_.tensors());
  at::Tensor graph = program_.saving_a_tensor();
  std::thread other([&] {
    const std::lock_guard lock(python);
    is_held.set_value();
    is_looking_up.get_future().wait();
    graph = at::Tensor();
  });
  is_held.get_future().wait();
  is_armed = true;
  program_.saving_a_tensor();
  other.join();
  EXPECT_TRUE(was_free);
  session.abandon_step();
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

#include "simulator/advisor/step_floor.h"

#include <gtest/gtest.h>

#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"

namespace offprof {
namespace {

/// Trace of a step with 1000 resident bytes, of which 300 are parameters. Backward makes gradients of 300
/// bytes and a temporary of 50; forward makes an output of 70, which stays.
Trace trace_of_step() {
  ProgramSketch sketch(1000);
  sketch.phase("forward");
  const std::int32_t output = sketch.alloc(70);
  sketch.phase("backward");
  const std::int32_t first = sketch.alloc(100), temporary = sketch.alloc(50), second = sketch.alloc(200);
  sketch.free(temporary);
  sketch.backward_end();
  sketch.phase("optimizer");
  sketch.free(sketch.alloc(400));
  for (const std::int32_t storage : {first, second, output}) sketch.free(storage);
  Trace trace = sample_trace();
  trace.model.parameter_bytes = 300;
  trace.program = sketch.program();
  return trace;
}

TEST(StepFloor, SplitsWhatTheStepHoldsWhenTheOptimizerBegins) {
  Trace trace = trace_of_step();
  trace.model.optimizer = {600, 40};
  const StepFloor floor = floor_of(trace);
  EXPECT_EQ(
      floor,
      (StepFloor{
          .parameters = 300, .master_weights = 40, .gradients = 300, .optimizer = 600, .workspaces = 60}));
  EXPECT_EQ(floor.total(), 1300);
  EXPECT_EQ(floor.sharded(), 1240);
}

TEST(StepFloor, CountsGradientsThatAreThereBeforeTheStep) {
  Trace trace = trace_of_step();
  trace.model.optimizer = {600, 0};
  trace.model.held_gradient_bytes = 70;
  EXPECT_EQ(floor_of(trace),
            (StepFloor{.parameters = 300, .gradients = 370, .optimizer = 600, .workspaces = 30}));
}

TEST(StepFloor, CountsGradientsOnceIfTheNextStepDropsThem) {
  ProgramSketch sketch(1000);
  const std::int32_t before = sketch.resident(300);
  sketch.phase("forward");
  sketch.free(before);
  sketch.phase("backward");
  sketch.alloc(300);
  sketch.phase("optimizer");
  Trace trace = sample_trace();
  trace.program = sketch.program();
  trace.model.parameter_bytes = 300;
  trace.model.optimizer = {350, 0};
  trace.model.held_gradient_bytes = 300;
  EXPECT_EQ(floor_of(trace),
            (StepFloor{.parameters = 300, .gradients = 300, .optimizer = 350, .workspaces = 50}));
  trace.model.optimizer.reset();
  EXPECT_EQ(floor_of(trace).total(), 1000);
}

TEST(StepFloor, CountsWhatTheProgramHoldsFromStepToStep) {
  ProgramSketch sketch(1000);
  const std::int32_t old_batch = sketch.resident(90, StorageRole::kInput);
  sketch.resident(20, StorageRole::kBuffer);
  const std::int32_t old_logits = sketch.resident(200);
  sketch.phase("forward");
  sketch.alloc(90, StorageRole::kInput);
  sketch.free(old_batch);
  sketch.free(old_logits);
  sketch.phase("backward");
  sketch.free(sketch.alloc(50));
  sketch.phase("optimizer");
  Trace trace = sample_trace();
  trace.program = sketch.program();
  trace.model.parameter_bytes = 300;
  trace.model.optimizer = {60, 0};
  trace.model.held_gradient_bytes = 300;  // which no step drops
  EXPECT_EQ(
      floor_of(trace),
      (StepFloor{.parameters = 300, .gradients = 300, .optimizer = 60, .inputs = 20, .workspaces = 30}));
}

TEST(StepFloor, DoesNotSplitWhatTheTraceDoesNotTell) {
  Trace trace = trace_of_step();
  trace.model.optimizer.reset();
  EXPECT_EQ(floor_of(trace),
            (StepFloor{.parameters = 300, .gradients = 300, .optimizer = 700, .is_optimizer_mixed = true}));
}

}  // namespace
}  // namespace offprof

#include "simulator/steps/trace_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sample_layouts.h"
#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Trace trace_with(StepProgram as_saved, StepProgram dense) {
  Trace trace;
  trace.program = std::move(as_saved);
  trace.dense_program = std::move(dense);
  return trace;
}

Policy trl(std::optional<Bytes> threshold) {
  Policy policy = preset_policy("trl");
  policy.threshold_bytes = threshold;
  policy.stash_count = 0;
  return policy;
}

bool is_of_dense_program(const Trace& trace, const Policy& policy) {
  return &TraceSteps(trace).program(policy) == &*trace.dense_program;
}

TEST(TraceSteps, UsesTheDenseProgramIfAllChangedTensorsComeBackDense) {
  const Trace trace = trace_with(program_of_layouts(0), program_of_layouts(50));
  EXPECT_TRUE(is_of_dense_program(trace, trl(kSmall)));
  EXPECT_THAT(TraceSteps(trace).inexactness(trl(kSmall)), IsEmpty());
}

TEST(TraceSteps, UsesTheProgramAsSavedIfNoChangedTensorComesBack) {
  const Trace trace = trace_with(program_of_layouts(0), program_of_layouts(50));
  EXPECT_FALSE(is_of_dense_program(trace, trl(std::nullopt)));
  EXPECT_THAT(TraceSteps(trace).inexactness(trl(std::nullopt)), IsEmpty());
}

TEST(TraceSteps, ReportsInexactnessIfOnlySomeChangedTensorsComeBack) {
  const Trace trace = trace_with(program_of_layouts(0), program_of_layouts(50));
  EXPECT_THAT(TraceSteps(trace).inexactness(trl(kLarge)),
              HasSubstr("all 2 such tensors are reloaded in that layout, but this setting reloads 1"));
}

TEST(TraceSteps, ReportsSavedTensorsThatOutliveTheStep) {
  ProgramSketch sketch;
  sketch.node(sketch.save(sketch.alloc(100)));
  sketch.save(sketch.alloc(3 * kMiB));
  Trace trace = sample_trace();
  trace.program = sketch.program();
  EXPECT_THAT(TraceSteps(trace).inexactness(preset_policy("keep")),
              HasSubstr("saved tensors of 3.00 MiB outlive the step"));
}

TEST(TraceSteps, AreExactIfTheNextStepReleasesWhatOutlivesAStep) {
  ProgramSketch sketch(3 * kMiB);
  const auto before = sketch.resident(3 * kMiB);
  const auto left = sketch.alloc(3 * kMiB);
  sketch.save(left);
  sketch.free(before);
  Trace trace = sample_trace();
  trace.program = sketch.program();
  trace.program.renewals = {{before, left}};
  EXPECT_THAT(TraceSteps(trace).inexactness(preset_policy("offload")), HasSubstr("3.00 MiB outlive"))
      << "the program holds the storage as well";
  trace.program.renewals[0].let_go = 1;
  EXPECT_THAT(TraceSteps(trace).inexactness(preset_policy("offload")), IsEmpty());
  sketch.free(left);
  trace.program = sketch.program();
  trace.program.renewals = {{before, left}};
  EXPECT_THAT(TraceSteps(trace).inexactness(preset_policy("offload")), IsEmpty());
}

TEST(TraceSteps, ReportReservedMemoryAsInexactIfOtherStepsHaveOtherShapes) {
  Trace trace = virtual_sample_trace();
  trace.steps_differ = true;
  EXPECT_THAT(TraceSteps(trace).inexactness(preset_policy("offload")),
              HasSubstr("allocated and reserved memory may be inexact"));
  trace.program.allocator.reset();
  EXPECT_THAT(TraceSteps(trace).inexactness(preset_policy("offload")), IsEmpty());
}

TEST(TraceSteps, UsesTheProgramAsSavedIfTheReloadedTensorsDoNotChange) {
  const Trace trace = trace_with(program_of_layouts(0), program_of_layouts(50));
  EXPECT_FALSE(is_of_dense_program(trace, trl(kLargest)));
  EXPECT_THAT(TraceSteps(trace).inexactness(trl(kLargest)), IsEmpty());
}

TEST(TraceSteps, ReportsInexactnessIfAReloadedTensorIsUsedAfterItsNode) {
  const Trace trace = trace_with(program_of_layouts(0), program_of_layouts(50, /*escapes=*/true));
  EXPECT_THAT(TraceSteps(trace).inexactness(trl(kLargest)), HasSubstr("reloads none of them"));
}

TEST(TraceSteps, UsesTheProgramAsSavedIfNothingComesBackEvenIfNoLayoutChanges) {
  StepProgram as_saved = program_of_layouts(0), dense = program_of_layouts(50);
  for (StepProgram* const program : {&as_saved, &dense})
    program->saved[1].layout = program->saved[2].layout = program->saved[0].layout;  // nothing changes
  const Trace trace = trace_with(std::move(as_saved), std::move(dense));
  EXPECT_TRUE(is_of_dense_program(trace, trl(kSmall)));
  EXPECT_FALSE(is_of_dense_program(trace, trl(std::nullopt)));
  EXPECT_THAT(TraceSteps(trace).inexactness(trl(std::nullopt)), IsEmpty());
}

TEST(TraceSteps, EverySettingIsExactWithoutADenseProgram) {
  Trace trace = trace_with(program_of_layouts(0), {});
  trace.dense_program.reset();
  EXPECT_THAT(TraceSteps(trace).inexactness(trl(kLarge)), IsEmpty());
}

TEST(UsableMemory, IsTheDevicesMemoryMinusTheMostBesideTheAllocator) {
  Environment environment;
  EXPECT_EQ(usable_memory(environment), std::nullopt);
  environment.device_memory_bytes = 1000;
  EXPECT_EQ(usable_memory(environment), 1000);
  environment.beside_allocator = {100, 300, 200};
  EXPECT_EQ(usable_memory(environment), 700);
  environment.beside_allocator->end_bytes = 2000;
  EXPECT_EQ(usable_memory(environment), 0);
}

TEST(TraceSteps, UsesTheProgramAsSavedUnderRulesOtherThanTrls) {
  const Trace trace = trace_with(program_of_layouts(0), program_of_layouts(50));
  EXPECT_FALSE(is_of_dense_program(trace, preset_policy("offload")));
  EXPECT_THAT(TraceSteps(trace).inexactness(preset_policy("offload")), IsEmpty());
}

}  // namespace
}  // namespace offprof

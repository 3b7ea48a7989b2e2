#include <gtest/gtest.h>

#include "simulator/replay/replay.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

/// The program gives 100 ns of work to another stream, and frees a storage that this work uses. Then it
/// allocates another one, `before_next` later on the host.
StepProgram freed_while_in_use(Nanoseconds before_next) {
  ProgramSketch sketch;
  const std::int32_t gathered = sketch.alloc(100);
  sketch.request_free(gathered);
  const std::int32_t next = sketch.alloc(70);
  sketch.free(gathered);
  sketch.free(next);
  StepProgram program = sketch.program();
  program.work.assign(program.events.size(), Work{});
  program.work[2] = {before_next, 0, before_next};
  program.stream_commands = {
      {.kind = StreamCommand::Kind::kKernel, .stream = 1, .duration_ns = 100, .event = 1},
      {.kind = StreamCommand::Kind::kRecord, .stream = 1, .point = 0, .event = 1}};
  program.free_points = {{gathered, 0}};
  return program;
}

Bytes peak_of(const StepProgram& program) {
  return replay(Step(program), preset_policy("keep"), kAnyLink).metrics.device_peak_bytes.value();
}

TEST(RequestedFree, MemoryIsInUseUntilTheOtherStreamIsDone) {
  EXPECT_EQ(peak_of(freed_while_in_use(99)), 170);
  EXPECT_EQ(peak_of(freed_while_in_use(100)), 100);
}

TEST(RequestedFree, MemoryIsInUseUntilItsFreeIfNoPointsAreKnown) {
  StepProgram program = freed_while_in_use(100);
  program.free_points.clear();
  EXPECT_EQ(peak_of(program), 170);
}

}  // namespace
}  // namespace offprof

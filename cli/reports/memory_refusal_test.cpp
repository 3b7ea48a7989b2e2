#include "cli/reports/memory_refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sample_trace.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string refusal_of(std::optional<SavedId> reloaded) {
  RunResult result;
  result.trace = sample_trace();
  result.refusal = {.asked_bytes = 384, .live_bytes = 1024, .capacity_bytes = 1200, .reloaded = reloaded};
  return memory_refusal_error(result).what();
}

TEST(MemoryRefusal, NamesTheSavedTensorThatCouldNotBeReloaded) {
  const StepProgram program = sample_trace().program;
  EXPECT_THAT(refusal_of(0),
              HasSubstr("384 B requested to reload saved tensor 0, " + program.saved[0].layout->dtype + "["));
  EXPECT_THAT(refusal_of(0),
              HasSubstr("] of " + program.names[program.saved[0].op] + ", with 1.00 KiB live of"));
}

TEST(MemoryRefusal, NamesNoTensorIfTheStepItselfAllocated) {
  EXPECT_THAT(refusal_of(std::nullopt), HasSubstr("384 B requested, with 1.00 KiB live of 1.17 KiB."));
}

TEST(MemoryRefusal, NamesNoTensorOutsideTheRecording) {
  EXPECT_THAT(refusal_of(100000), Not(HasSubstr("saved tensor")));
}

}  // namespace
}  // namespace offprof

#include "traces/model/step_program.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(ScaleCompute, KeepsSumsExactDespiteRounding) {
  StepProgram program;
  for (int i = 0; i < 3; ++i) program.events.push_back({EventKind::kNodeEnd, 0, 5});
  scale_compute(program, 0.5);
  Nanoseconds sum = 0;
  for (const Event& event : program.events) {
    EXPECT_GE(event.compute_ns, 2);
    sum += event.compute_ns;
  }
  EXPECT_EQ(sum, 8);  // 7.5
}

TEST(ScaleCompute, ScalesWorkToo) {
  StepProgram program;
  program.events.assign(3, {EventKind::kNodeEnd, 0, 5});
  program.work.assign(3, {3, 5, 5, 7, 5});
  scale_compute(program, 2, 1, 3);
  EXPECT_EQ(program.work[0], (Work{3, 5, 5, 7, 5}));
  EXPECT_EQ(program.work[2], (Work{6, 10, 10, 14, 10}));
  EXPECT_EQ(program.events[0].compute_ns, 5);
  EXPECT_EQ(program.events[1].compute_ns, 10);
}

TEST(ScaleCompute, KeepsSumsOfWorkExactDespiteRounding) {
  StepProgram program;
  program.events.assign(4, {EventKind::kNodeEnd, 0, 5});
  program.work.assign(4, {5, 5, 5, Work::kNoWait, 5});
  scale_compute(program, 0.5);
  Work all;
  for (const Work& work : program.work) all = then(all, work);
  EXPECT_EQ(all, (Work{10, 10, 10, Work::kNoWait, 10}));
}

}  // namespace
}  // namespace offprof

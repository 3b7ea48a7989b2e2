#include "traces/program.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(ScaleCompute, LosesNothingToRounding) {
  Program program;
  for (int i = 0; i < 3; ++i) program.events.push_back({EventKind::kNodeEnd, 0, 5});
  scale_compute(program, 0.5);
  Nanoseconds sum = 0;
  for (const Event& event : program.events) {
    EXPECT_GE(event.compute_ns, 2);
    sum += event.compute_ns;
  }
  EXPECT_EQ(sum, 8);  // 7.5
}

}  // namespace
}  // namespace offprof

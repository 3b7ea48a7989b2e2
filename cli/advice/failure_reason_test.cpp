#include "cli/advice/failure_reason.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(FailureReason, IsTheLastErrorOnOneLine) {
  EXPECT_EQ(
      failure_reason(
          "warning: slow\nerror: first\nerror: checkpoint: 'x' matches\n       nothing\nhint: try y\n", 2),
      "checkpoint: 'x' matches nothing");
}

TEST(FailureReason, LeavesOutLaterMessages) {
  EXPECT_EQ(failure_reason("error: out of memory\nnote: 3 steps\nTraceback\n", 3), "out of memory");
}

TEST(FailureReason, IsTheExitStatusIfNoErrorWasPrinted) {
  EXPECT_EQ(failure_reason("warning: slow\n", 139), "the run ended with exit status 139");
}

}  // namespace
}  // namespace offprof

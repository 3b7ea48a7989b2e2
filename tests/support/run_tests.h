#pragma once

namespace offprof {

/// Exit status of a test program whose cases were all skipped because no device opens.
inline constexpr int kSkippedStatus = 77;

/// Runs the selected tests. Returns the exit status of the program: 0 where they passed, 1 where one failed,
/// kSkippedStatus where all of them were skipped. With OFFPROF_REQUIRE_CUDA=1 in the environment, as on a
/// machine that has a GPU, a skipped test is a failure, and so is a selection without any test. Call
/// testing::InitGoogleMock first.
int run_tests();

}  // namespace offprof

#pragma once

namespace offprof {

/// Exit status of a test program if all its cases were skipped because no device could be opened.
inline constexpr int kSkippedStatus = 77;

/// Runs the selected tests. Returns the exit status of the program: 0 if they passed, 1 if one failed,
/// kSkippedStatus if all of them were skipped. With OFFPROF_REQUIRE_CUDA=1 in the environment, as on a
/// machine with a GPU, a skipped test is a failure, and so is a selection without any test. Call
/// testing::InitGoogleMock first.
int run_tests();

}  // namespace offprof

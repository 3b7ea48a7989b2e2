#include "tests/support/run_tests.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace offprof {
namespace {

bool requires_cuda() {
  const char* value = std::getenv("OFFPROF_REQUIRE_CUDA");
  return value != nullptr && *value != '\0';
}

}  // namespace

int run_tests() {
  const int status = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (status != 0) return status;
  if (requires_cuda() && (tests.skipped_test_count() > 0 || tests.test_to_run_count() == 0)) {
    std::cerr << "OFFPROF_REQUIRE_CUDA is set: " << tests.skipped_test_count() << " skipped of "
              << tests.test_to_run_count() << " tests is a failure\n";
    return 1;
  }
  const bool all_skipped = tests.skipped_test_count() > 0 && tests.successful_test_count() == 0;
  return all_skipped ? kSkippedStatus : 0;
}

}  // namespace offprof

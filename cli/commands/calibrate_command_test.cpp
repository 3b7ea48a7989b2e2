#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cli_run.h"

namespace offprof {
namespace {

using testing::HasSubstr;

TEST(CalibrateCommand, RefusesWhatIsNoGpu) {
  const CliRun run = run_words({"calibrate", "--device", "host"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("'host' is no GPU"));
}

TEST(CalibrateCommand, RefusesAProfileThatDoesNotExist) {
  const CliRun run = run_words({"calibrate", "--device", "virtual:h3000"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("no GPU profile is named 'h3000'"));
}

}  // namespace
}  // namespace offprof

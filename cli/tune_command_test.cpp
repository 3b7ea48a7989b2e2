#include "cli/tune_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/cli_run.h"
#include "traces/sample_trace.h"
#include "traces/trace_io.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TuneCommandTest : public testing::Test {
 protected:
  CliRun tune(const Trace& trace, std::vector<std::string> words = {}, const Terminal& terminal = {}) const {
    write_trace(trace_, trace);
    words.insert(words.begin(), {"tune", "--trace", trace_});
    return run_words(words, terminal);
  }

  TemporaryFolder folder_{"tune_command"};
  std::string trace_ = folder_ / "trace.json";
};

TEST_F(TuneCommandTest, MarksModelledTimes) {
  EXPECT_THAT(tune(virtual_sample_trace()).out, HasSubstr("times      modelled, not measured"));
  EXPECT_THAT(tune(sample_trace()).out, Not(HasSubstr("modelled")));
  const auto is_marked = [&](const Trace& trace) {
    return nlohmann::json::parse(tune(trace, {"--format", "json"}).out).contains("times_are_modelled");
  };
  EXPECT_TRUE(is_marked(virtual_sample_trace()));
  EXPECT_FALSE(is_marked(sample_trace()));
}

TEST_F(TuneCommandTest, ShowsWhatAnAllocatorReserves) {
  EXPECT_THAT(tune(virtual_sample_trace()).out, AllOf(HasSubstr("reserved"), HasSubstr("2.00 MiB")));
  EXPECT_THAT(tune(sample_trace()).out, AllOf(Not(HasSubstr("reserved")), HasSubstr("peak")));
}

TEST_F(TuneCommandTest, WhereNothingFitsTellsTheLeastThatIsTakenOfTheDevice) {
  const CliRun run = tune(virtual_sample_trace(), {"--memory-budget", "1MiB"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(
      run.out,
      HasSubstr("No policy fits into 1.00 MiB. The least reachable is 2.00 MiB reserved (2097152 bytes)"));
  EXPECT_THAT(tune(sample_trace(), {"--memory-budget", "1KiB"}).out,
              HasSubstr("The least reachable is 4.09 KiB (4192 bytes)"));
}

TEST_F(TuneCommandTest, KeepsWithin80Columns) {
  std::istringstream lines(tune(virtual_sample_trace(), {}, {.width = 80}).out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80U) << line;
}

}  // namespace
}  // namespace offprof

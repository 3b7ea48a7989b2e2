// The text that commands print of recorded traces, at 80 and 120 columns, against files that people have
// looked at. To write them anew after a change, and look at them: OFFPROF_WRITE_GOLDEN_FILES=1
// build/tests/cli_test
// --gtest_filter='*Golden*'
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/cli_run.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;

struct Golden {
  std::string name;
  std::vector<std::string> words;
  int status = 0;
};

class GoldenTest : public testing::TestWithParam<std::tuple<Golden, std::size_t>> {
 protected:
  GoldenTest() { fs::current_path(OFFPROF_GOLDEN_FILES); }
  ~GoldenTest() override { fs::current_path(before_); }

 private:
  fs::path before_ = fs::current_path();
};

/// Command lines to paste are not wrapped.
bool may_be_long(const std::string& line) {
  return line.starts_with("Next: ") || line.starts_with("Then: ") || line.starts_with("  offprof ");
}

TEST_P(GoldenTest, IsPrintedAsBefore) {
  const auto& [golden, columns] = GetParam();
  const CliRun run = run_words(golden.words, {.width = columns});
  EXPECT_EQ(run.status, golden.status) << run.err;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(may_be_long(line) || display_width(line) <= columns) << line;
  const std::string path = golden.name + "." + std::to_string(columns) + ".txt";
  if (std::getenv("OFFPROF_WRITE_GOLDEN_FILES") != nullptr) std::ofstream(path) << run.out;
  EXPECT_EQ(run.out, read_file(path));
}

INSTANTIATE_TEST_SUITE_P(
    Commands, GoldenTest,
    testing::Combine(
        testing::Values(Golden{"tune", {"tune", "step.json.gz"}},
                        Golden{"simulate", {"simulate", "step.json.gz", "--policy", "offload"}},
                        Golden{"diff", {"diff", "step.json.gz", "offloaded.json.gz"}},
                        Golden{"diff_details", {"diff", "step.json.gz", "offloaded.json.gz", "-v"}},
                        Golden{"gate", {"gate", "step.json.gz", "--limit", "device_peak_bytes<=1MiB"}, 1},
                        Golden{"advise", {"advise", "-t", "step.json.gz", "--memory-budget", "25MiB"}},
                        Golden{"view", {"view", "step.json.gz"}}),
        testing::Values(std::size_t{80}, std::size_t{120})),
    [](const auto& instance) {
      return std::get<0>(instance.param).name + "_at_" + std::to_string(std::get<1>(instance.param));
    });

}  // namespace
}  // namespace offprof

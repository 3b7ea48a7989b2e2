// The text that `run` prints at 80 and 120 columns, against files that people have looked at. To write them
// anew after a change, and look at them: OFFPROF_WRITE_GOLDEN_FILES=1 build/tests/e2e_test
// --gtest_filter='*RunText*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

class RunText : public testing::TestWithParam<const char*> {
 protected:
  RunText() { setenv("COLUMNS", GetParam(), 1); }
  ~RunText() override { unsetenv("COLUMNS"); }
};

/// Removes the folder of the models, with the slash at its end.
std::string without_folder(std::string text) {
  const std::string folder = std::filesystem::path(model_path("x")).parent_path().string() + "/";
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) text.erase(at, folder.size());
  return text;
}

TEST_P(RunText, IsPrintedAsBefore) {
  if (!keeps_cublas_workspaces()) GTEST_SKIP() << "the text is that of LibTorch 2.11";
  const Ended run =
      run_program({"run", model_path("qwen2.pt"), "--input", "@" + model_path("qwen2.inputs"), "--steps", "2",
                   "--device", "virtual:h200", "--policy", "offload", "--threshold", "20000"});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string text = without_folder(run.out);
  const std::string path = std::string(OFFPROF_GOLDEN_FILES) + "/run." + GetParam() + ".txt";
  if (std::getenv("OFFPROF_WRITE_GOLDEN_FILES") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, read_file(path));
}

INSTANTIATE_TEST_SUITE_P(Columns, RunText, testing::Values("80", "120"));

}  // namespace
}  // namespace offprof

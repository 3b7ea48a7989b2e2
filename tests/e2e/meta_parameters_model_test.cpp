// Models on the meta device: their parameters take no memory. They are created in a moment whatever their
// size, and run on devices that do not read parameters.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "e2e/offprof_process.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using testing::HasSubstr;

TEST(MetaParametersModel, SeventyBillionParametersGiveASmallFile) {
  constexpr std::uintmax_t kMost = 2 << 20;
  const TestFolder folder;
  const Ended made = run_program({"zoo", "make", "llama", "--preset", "70b", "--dtype", "bfloat16", "--meta",
                                  "-o", folder / "model.pt"});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("--device virtual --device-memory 2TiB"));
  EXPECT_LT(std::filesystem::file_size(folder / "model.pt"), kMost);
}

TEST(MetaParametersModel, IsRejectedOnTheHost) {
  const TestFolder folder;
  ASSERT_EQ(run_program({"zoo", "make", "mlp", "--meta", "-o", folder / "model.pt"}).status, 0);
  const Ended ended = run_program({"run", folder / "model.pt", "--device", "host"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("model.pt: the model has meta parameters (zoo make --meta)"));
}

}  // namespace
}  // namespace offprof

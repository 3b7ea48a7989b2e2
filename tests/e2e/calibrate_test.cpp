// `offprof calibrate` of a virtual GPU, whose figures are known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kTolerance = 0.01;

class CalibrateTest : public testing::TestWithParam<std::string> {};

TEST_P(CalibrateTest, FindsTheFiguresOfTheProfile) {
  const TestFolder folder;
  const std::string path = folder / "measured.json";
  const Ended ended =
      run_program({"calibrate", "--device", "virtual:" + GetParam(), "-o", path, "--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.err, IsEmpty());
  const json report = json::parse(ended.out);
  EXPECT_EQ(report["like"], GetParam());
  EXPECT_EQ(report["times_are_modelled"], true);
  for (const auto& [key, figure] : report["figures"].items()) {
    const double like = figure["like"];
    EXPECT_NEAR(figure["measured"].get<double>(), like, kTolerance * like) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Profiles, CalibrateTest, testing::Values("a100-80gb", "h100-80gb", "l4"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Calibrate, WritesAProfileThatIsADevice) {
  const TestFolder folder;
  const std::string path = folder / "measured.json", model = folder / "model.pt";
  ASSERT_EQ(run_program({"calibrate", "--device", "virtual:rtx3090", "-o", path}).status, 0);
  ASSERT_EQ(run_program({"zoo", "make", "mlp", "-o", model}).status, 0);
  const json run = report_of({"run", model, "--device", "virtual:" + path});
  EXPECT_EQ(run["environment"]["device"], "virtual:nvidia-geforce-rtx-3090");
}

TEST(Calibrate, SaysThatNothingWasMeasured) {
  const Ended ended = run_program({"calibrate", "--device", "virtual:l4"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("modelled, not measured: there was no GPU"));
}

}  // namespace
}  // namespace offprof

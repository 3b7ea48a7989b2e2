#include "cli/reports/advice/world_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/sample_trace.h"
#include "tests/support/sample_way.h"

namespace offprof {
namespace {

WorldAttempt attempt(int world_size, Way nothing, Way best) {
  RankAdvice found{world_size - 1, {}};
  found.advice.goal.most_memory = 78 * kGiB;
  found.advice.nothing = std::move(nothing);
  found.advice.ways = {std::move(best)};
  found.advice.recordings = 2;
  return {world_size, std::move(found), {}};
}

class WorldReportTest : public testing::Test {
 protected:
  WorldReportTest() {
    advice_.attempts = {
        attempt(2, sample_way("keep everything", 122 * kGiB, 1'249'000'000, false),
                sample_way("offload all", 90 * kGiB, 2'100'000'000, false)),
        attempt(4, sample_way("keep everything", 91 * kGiB, 1'300'000'000, false),
                sample_way("recompute + offload 203 tensors", 77 * kGiB, 1'311'000'000, true)),
        {8, std::nullopt, "the step cannot be recorded: 12 heads do not divide by 8"},
    };
    advice_.best = 1;
  }

  std::string text(std::size_t width) const {
    WorldReport report{advice_, {advice_.best_attempt().found->advice, plain_}};
    report.best.instructions.run = {"run", "train.py", "--world-size", "4"};
    return to_text(report, {.width = width});
  }

  Trace plain_ = virtual_sample_trace();
  WorldAdvice advice_;
};

TEST_F(WorldReportTest, OpensWithTheLeastNumberIn120Columns) {
  EXPECT_THAT(
      text(120),
      testing::StartsWith(
          R"(The least number of ranks that fits is 4, a GPU each. Figures are of rank 3, which takes the most memory.

     ranks  rank  nothing done     step  best way                           memory     step
  ─  ─────  ────  ────────────  ───────  ───────────────────────────────  ────────  ───────
  !      2     1       122 GiB  1.249 s  offload all                      90.0 GiB  2.100 s
  >      4     3      91.0 GiB  1.300 s  recompute + offload 203 tensors  77.0 GiB  1.311 s
!: not within the limits
not recorded: 8 ranks: the step cannot be recorded: 12 heads do not divide by 8
NCCL takes 0.5 to 2 GB a communicator beside these figures: lower --memory-budget by that much

4 ranks, rank 3
Does not fit: a step takes 91.0 GiB, 13.0 GiB more than 78.0 GiB.
)"));
}

TEST_F(WorldReportTest, Fits80Columns) {
  std::istringstream lines(text(80));
  for (std::string line; std::getline(lines, line) && !line.starts_with("Next: ");)
    EXPECT_LE(display_width(line), 80U) << line;
}

TEST_F(WorldReportTest, SaysThatNoNumberFits) {
  advice_.attempts.resize(1);
  advice_.best = 0;
  EXPECT_THAT(text(120),
              testing::StartsWith("No number of ranks that was tried fits; nearest: 2 ranks. Try more"));
}

TEST_F(WorldReportTest, SaysThatTheOnlyNumberFits) {
  advice_.attempts = {advice_.attempts[1]};
  advice_.best = 0;
  EXPECT_THAT(text(120), testing::StartsWith("4 ranks fit, a GPU each."));
}

TEST_F(WorldReportTest, HasTheSameFiguresInJson) {
  const nlohmann::ordered_json json =
      to_json(WorldReport{advice_, {advice_.best_attempt().found->advice, plain_}});
  EXPECT_EQ(json["world_size"], 4);
  EXPECT_EQ(json["rank"], 3);
  EXPECT_EQ(json["is_within"], true);
  EXPECT_EQ(json["attempts"][0]["recommended"]["predicted"]["step_time_ns"], 2'100'000'000);
  EXPECT_EQ(json["attempts"][2]["reason"], "the step cannot be recorded: 12 heads do not divide by 8");
  EXPECT_EQ(json["advice"]["recommended"]["name"], "recompute + offload 203 tensors");
}

}  // namespace
}  // namespace offprof

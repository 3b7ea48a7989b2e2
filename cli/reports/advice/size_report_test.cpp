#include "cli/reports/advice/size_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/sample_trace.h"

namespace offprof {
namespace {

SizedWay way(const std::string& name, std::int64_t size, Bytes taken, Nanoseconds time_ns) {
  SizedWay sized{.way = {.name = name}, .size = size, .way_size = std::max<std::int64_t>(size, 1)};
  sized.way.configuration.size = size;
  sized.way.predicted.device_reserved_peak_bytes = taken;
  sized.way.predicted.step_time_ns = time_ns;
  return sized;
}

/// Batches of sequences of 4096 tokens; the program has 4.
class SizeReportTest : public testing::Test {
 protected:
  SizeReportTest() {
    plain_.settings.inputs = {"int64[4,4096]<32000"};
    SizeAdvice& advice = report_.advice;
    advice.goal.most_memory = 78 * kGiB;
    advice.present = 4;
    advice.nothing = way("keep everything", 4, 122 * kGiB, 1'249'000'000).way;
    advice.ways = {way("checkpoint all 32 layers.* + offload all", 37, 77 * kGiB + kGiB / 2, 13'100'000'000),
                   way("keep everything", 2, 70 * kGiB, 700'000'000),
                   way("layer slices", 0, 90 * kGiB, 2'000'000'000)};
    advice.ways[0].way.policy.name = "advised";
    advice.ways[0].way.configuration.expands_segments = true;
    advice.ways[2].way.configuration.slices = SliceSettings{};
    advice.recordings = 21;
    advice.replayed = 300;
    report_.instructions = {.run = {"run", "7b.pt", "--policy", "policy.json"}, .policy = "policy.json"};
  }

  std::string text(std::size_t width) const { return to_text(report_, {.width = width}); }

  Trace plain_ = virtual_sample_trace();
  SizeReport report_{{}, plain_, "batch"};
};

TEST_F(SizeReportTest, CountedTokensNeedNotBeAMultipleOfTheSize) {
  plain_.settings.inputs = {"--length", "1024"};
  plain_.step_size.tokens = 4 * 1023;
  report_.is_batch = false;
  report_.advice.present = 1024;
  report_.advice.ways.resize(1);
  report_.advice.ways[0].way_size = 2048;
  EXPECT_THAT(text(120), testing::HasSubstr("625 tokens/s, against 3276 tokens/s with nothing done at 1024"));
}

TEST_F(SizeReportTest, OpensWithTheVerdictIn120Columns) {
  EXPECT_TRUE(text(120).starts_with(
      R"(The largest batch within 78.0 GiB is 37; 2 with nothing done (the program has 4).
Recommended: checkpoint all 32 layers.* + offload all (expandable segments). It takes 77.5 GiB.
Cost: 13.100 s a step, 11569 tokens/s, against 13118 tokens/s with nothing done at 4.

     way                                       batch    memory      step            rate
  ─  ────────────────────────────────────────  ─────  ────────  ────────  ──────────────
  >  checkpoint all 32 layers.* + offload all     37  77.5 GiB  13.100 s  11569 tokens/s
     keep everything                               2  70.0 GiB    700 ms  11703 tokens/s
  !  layer slices                                  0  90.0 GiB   2.000 s   2048 tokens/s
times      modelled, not measured: there was no GPU
!: no size is within the limits; figures of the largest that fits the memory, or else of a step of 1
Each batch is exact: a step of it was recorded and is within the limits, and the next one is not.
21 recordings, 300 simulated policies
Next: offprof run 7b.pt --policy policy.json -o advised.json.gz
)")) << text(120);
}

TEST_F(SizeReportTest, Fits80Columns) {
  std::istringstream lines(text(80));
  for (std::string line; std::getline(lines, line) && !line.starts_with("Next: ");)
    EXPECT_LE(display_width(line), 80U) << line;
}

TEST_F(SizeReportTest, SaysThatNoSizeFits) {
  report_.advice.ways.erase(report_.advice.ways.begin(), report_.advice.ways.begin() + 2);
  EXPECT_TRUE(text(120).starts_with("No batch is within 78.0 GiB: a step of 1 takes 90.0 GiB at least.\n"))
      << text(120);
  EXPECT_THAT(text(120), testing::Not(testing::HasSubstr("Next: ")));
}

TEST_F(SizeReportTest, SaysThatWhatFitsIsTooSlow) {
  report_.advice.ways.erase(report_.advice.ways.begin());
  report_.advice.ways.front().size = 0;
  EXPECT_TRUE(text(120).starts_with(
      R"(No batch that fits 78.0 GiB is fast enough: keep everything at 2 takes 12.1 % more time for the same data than the
program with nothing done at 4.
)")) << text(120);
}

TEST_F(SizeReportTest, SaysWhereLargerStepsCouldNotBeRecorded) {
  report_.advice.ways[0].is_limited_by_recording = true;
  EXPECT_THAT(text(120), testing::HasSubstr("a larger step could not be recorded, so that it may fit.\n"));
}

TEST_F(SizeReportTest, HasTheSameFiguresInJson) {
  const nlohmann::ordered_json json = to_json(report_);
  EXPECT_EQ(json["present"], 4);
  EXPECT_EQ(json["ways"][0]["size"], 37);
  EXPECT_EQ(json["ways"][0]["predicted"]["step_time_ns"], 13'100'000'000);
  EXPECT_EQ(json["ways"][2]["size"], 0);
  EXPECT_EQ(json["run"][0], "run");
}

}  // namespace
}  // namespace offprof

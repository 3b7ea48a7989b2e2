#include "cli/reports/lost_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/cli_run.h"
#include "tests/support/sample_trace.h"
#include "traces/analysis/fingerprint.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Returns the output with its line breaks removed.
std::string one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

class LostRecordsTest : public testing::Test {
 protected:
  LostRecordsTest() {
    std::ofstream(model_) << "a model";
    Trace trace = sample_trace();
    trace.model.fingerprint = fingerprint_of_file(model_);
    trace.tracing = sample_tracing();
    write_trace(complete_, trace);
    trace.tracing->dropped_records = 12;
    write_trace(trace_, trace);
  }

  TemporaryFolder folder_{"lost_records"};
  std::string model_ = folder_ / "model.pt";
  std::string trace_ = folder_ / "trace.json", complete_ = folder_ / "complete.json";
  std::string out_ = folder_ / "out.json";
};

TEST_F(LostRecordsTest, CommandsThatPredictTimesRejectTheTrace) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"tune", "--trace", trace_, "-o", out_},
        {"simulate", "--trace", trace_, "-o", out_},
        {"validate", model_, "--trace", trace_, "-o", out_}}) {
    const CliRun run = run_words(words);
    EXPECT_EQ(run.status, 2) << words[0];
    EXPECT_EQ(run.out, "") << words[0];
    EXPECT_FALSE(std::filesystem::exists(out_)) << words[0];
    EXPECT_THAT(one_line(run.err),
                AllOf(HasSubstr("trace.json: CUPTI 13.0 lost GPU activity (12 records dropped)"),
                      HasSubstr("so its times may be too short"), HasSubstr("fewer --steps")))
        << words[0];
  }
}

TEST_F(LostRecordsTest, ForcePredictsTimesWithAWarning) {
  for (const char* command : {"tune", "simulate"}) {
    const CliRun run = run_words({command, "--trace", trace_, "--force", "-o", out_});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_TRUE(std::filesystem::exists(out_));
    EXPECT_THAT(one_line(run.out + run.err),
                HasSubstr("(12 records dropped), so its times may be too short"));
  }
}

TEST_F(LostRecordsTest, JsonHasTheWarning) {
  for (const char* command : {"tune", "simulate"}) {
    const CliRun run = run_words({command, "--trace", trace_, "--force", "--format", "json"});
    EXPECT_THAT(nlohmann::json::parse(run.out)["warnings"][0].get<std::string>(),
                HasSubstr("12 records dropped"));
  }
}

TEST_F(LostRecordsTest, ACompleteTraceNeedsNoForce) {
  for (const char* command : {"tune", "simulate"}) {
    const CliRun run = run_words({command, "--trace", complete_});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.err, Not(HasSubstr("lost")));
  }
}

TEST_F(LostRecordsTest, RejectsASimulationOfTheTrace) {
  run_words({"simulate", "--trace", trace_, "--force", "-o", out_});
  EXPECT_TRUE(read_trace(out_).tracing->steps.empty());
  EXPECT_EQ(run_words({"tune", "--trace", out_}).status, 2);
}

TEST_F(LostRecordsTest, AGateOfBytesAndOfTheStepNeedsNoForce) {
  const CliRun run = run_words({"gate", "--trace", trace_, "--baseline", complete_});
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST_F(LostRecordsTest, AGateOfOtherTimesNeedsForce) {
  std::vector<std::string> words = {"gate",    "--trace",         trace_, "--baseline", complete_,
                                    "--limit", "overlap_ratio>=0"};
  EXPECT_EQ(run_words(words).status, 2);
  words.emplace_back("--force");
  const CliRun run = run_words(words);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("overlap_ratio may be wrong"));
}

}  // namespace
}  // namespace offprof

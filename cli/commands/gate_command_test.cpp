#include "cli/commands/gate_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cli_run.h"
#include "tests/support/sample_trace.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GateCommandTest : public testing::Test {
 protected:
  GateCommandTest() { write(sample_trace()); }

  void write(const Trace& trace) { write_trace(trace_, trace); }
  void write_larger() {
    Trace trace = sample_trace();
    *trace.metrics.device_peak_bytes += 1;
    write(trace);
  }
  CliRun gate(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"gate", "--trace", trace_, "--baseline", baseline_});
    return run_words(words);
  }

  TemporaryFolder folder_{"gate_command"};
  std::string trace_ = folder_ / "trace.json";
  std::string baseline_ = folder_ / "baseline.json";
};

TEST_F(GateCommandTest, WritesABaselineThatTheSameTracePasses) {
  EXPECT_EQ(gate({"--update"}).status, 0);
  const CliRun run = gate();
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("device_peak_bytes"), HasSubstr("gate passed")));
}

TEST_F(GateCommandTest, AcceptsTheTraceAsAnArgument) {
  EXPECT_EQ(run_words({"gate", trace_, "--update", "--baseline", baseline_}).status, 0);
  EXPECT_EQ(run_words({"gate", trace_, "--baseline", baseline_}).out, gate().out);
  EXPECT_EQ(run_words({"gate", trace_, "--trace", baseline_, "--baseline", baseline_}).status, 2);
}

TEST_F(GateCommandTest, FailsWithStatus1ForOneByteTooMuch) {
  gate({"--update"});
  write_larger();
  const CliRun run = gate();
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, AllOf(HasSubstr("FAILED"), HasSubstr("gate failed: 1 of"), HasSubstr("offprof diff")));
}

TEST_F(GateCommandTest, AcceptsATraceAsBaseline) {
  write_trace(baseline_, sample_trace());
  EXPECT_EQ(gate().status, 0);
}

TEST_F(GateCommandTest, PrintsTheSameVerdictAsJson) {
  gate({"--update"});
  write_larger();
  const CliRun run = gate({"--format", "json", "--limit", "device_peak_bytes<=+0%"});
  EXPECT_EQ(run.status, 1);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["schema"], "offprof.report/1");
  EXPECT_EQ(json["command"], "gate");
  EXPECT_EQ(json["ok"], false);
  const auto& check = json["checks"].at(0);
  EXPECT_EQ(check["key"], "device_peak_bytes");
  EXPECT_EQ(check["baseline"], 4192);
  EXPECT_EQ(check["value"], 4193);
  EXPECT_EQ(check["limit"], "<=+0%");
  EXPECT_EQ(check["ok"], false);
}

TEST_F(GateCommandTest, ExplainsHowToWriteAMissingBaseline) {
  const CliRun run = gate();
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("there is no baseline"), HasSubstr("--update")));
}

TEST_F(GateCommandTest, UpdateOverwritesOnlyABaseline) {
  write_trace(baseline_, sample_trace());
  const std::string before = read_file(baseline_);
  EXPECT_EQ(gate({"--update"}).status, 2);
  EXPECT_EQ(read_file(baseline_), before);
}

TEST_F(GateCommandTest, NamesTheFlagOfABadLimit) {
  gate({"--update"});
  const CliRun run = gate({"--limit", "device_peak_bytes<=1.5XB"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--limit: "), HasSubstr("1.5XB")));
}

TEST_F(GateCommandTest, FailsForAnotherModelUnlessAllowed) {
  gate({"--update"});
  Trace trace = sample_trace();
  trace.model.name = "other.pt";
  trace.model.fingerprint = "sha256:1f";
  write(trace);
  const CliRun run = gate();
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, AllOf(HasSubstr("not the same model"), HasSubstr("--allow-different")));
  EXPECT_EQ(gate({"--allow-different"}).status, 0);
}

TEST_F(GateCommandTest, MarksModelledTimes) {
  EXPECT_THAT(gate({"--update"}).out, Not(HasSubstr("modelled")));
  write(virtual_sample_trace());
  const auto json_of = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--format", "json"});
    return nlohmann::json::parse(gate(words).out);
  };
  EXPECT_EQ(json_of({"--update"})["times_are_modelled"], true);
  EXPECT_EQ(json_of({})["times_are_modelled"], true);
  EXPECT_EQ(nlohmann::json::parse(read_file(baseline_))["environment"]["times_are_modelled"], true);
  EXPECT_THAT(gate({"--update"}).out, HasSubstr("times      modelled, not measured"));
  EXPECT_THAT(gate().out, HasSubstr("times      modelled, not measured"));
}

TEST_F(GateCommandTest, WritesItsReportToAFile) {
  gate({"--update"});
  const std::string report = folder_ / "report.json";
  EXPECT_EQ(gate({"--format", "json", "-o", report}).out, "");
  EXPECT_EQ(nlohmann::json::parse(read_file(report))["ok"], true);
}

}  // namespace
}  // namespace offprof

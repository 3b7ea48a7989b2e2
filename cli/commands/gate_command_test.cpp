#include "cli/commands/commands.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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

TEST_F(GateCommandTest, SaysWhatToDoWithTruncatedBaselines) {
  gate({"--update", "--key", "a"});
  write_file(baseline_, read_file(baseline_).substr(0, 400));
  for (const char* option : {"--update", "--add"}) {
    const CliRun run = gate({option, "--key", "a"});
    EXPECT_EQ(run.status, 2);
    EXPECT_THAT(run.err, AllOf(HasSubstr("is truncated"), HasSubstr("--update writes a new one")));
  }
}

TEST_F(GateCommandTest, ChecksTheFilesOfReportsFirst) {
  const CliRun run = gate({"--update", "--report", "junit=" + folder_ / "none/gate.xml"});
  EXPECT_EQ(run.status, 2);
  EXPECT_FALSE(std::filesystem::exists(baseline_));
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

TEST_F(GateCommandTest, NeedsNoBaselineForAbsoluteLimits) {
  const CliRun run = run_words({"gate", trace_, "--limit", "device_peak_bytes<=4192"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run_words({"gate", trace_, "--limit", "device_peak_bytes<=4191"}).status, 1);
  EXPECT_THAT(run_words({"gate", trace_, "--limit", "device_peak_bytes<=+0%"}).err,
              HasSubstr("--baseline is missing"));
}

TEST_F(GateCommandTest, SuggestsTheNearestFigure) {
  const CliRun run = gate({"--limit", "device_peek_bytes<=+0%"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("Did you mean `device_peak_bytes`?"));
}

TEST_F(GateCommandTest, RefusesABaselineOfAnotherTorchOrDevice) {
  gate({"--update"});
  Trace trace = sample_trace();
  trace.environment.torch_version = "2.15.0";
  write(trace);
  EXPECT_EQ(gate().status, 2);
  EXPECT_THAT(unwrapped(gate().err),
              AllOf(HasSubstr("another version of LibTorch: 2.11.0; now 2.15.0"), HasSubstr("--update")));
  EXPECT_EQ(gate({"--allow-different"}).status, 0);
  trace = sample_trace();
  trace.environment.device = "cuda";
  write(trace);
  EXPECT_EQ(gate().status, 2);
  EXPECT_THAT(unwrapped(gate().err), HasSubstr("the baseline is of another device: host; now cuda"));
}

TEST_F(GateCommandTest, KeepsBaselinesOfSeveralKeysInOneFile) {
  EXPECT_EQ(gate({"--update", "--key", "a/host"}).status, 0);
  const std::string first = read_file(baseline_);
  write_larger();
  EXPECT_EQ(gate({"--update", "--key", "b/host"}).status, 0);
  EXPECT_THAT(read_file(baseline_), HasSubstr("b/host"));
  EXPECT_EQ(gate({"--key", "b/host"}).status, 0);
  EXPECT_EQ(gate({"--key", "a/host"}).status, 1);
  EXPECT_THAT(gate().err, HasSubstr("Add --key, one of: a/host, b/host"));
  EXPECT_THAT(gate({"--key", "a/hots"}).err, AllOf(HasSubstr("Did you mean `a/host`?"), HasSubstr("b/host")));
  write(sample_trace());
  EXPECT_EQ(gate({"--update", "--key", "a/host"}).status, 0);
  const auto entry = [](const std::string& text) {
    return nlohmann::ordered_json::parse(text)["baselines"]["a/host"].dump();
  };
  EXPECT_EQ(entry(read_file(baseline_)), entry(first));
}

TEST_F(GateCommandTest, RefusesAKeyForAFileWithOneBaseline) {
  gate({"--update"});
  const CliRun run = gate({"--update", "--key", "a"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("has one baseline, without a key"));
}

TEST_F(GateCommandTest, LimitsATimeByTheDeviationOfSeveralRuns) {
  const auto write_time = [&](Nanoseconds time) {
    Trace trace = sample_trace();
    trace.metrics.step_time_ns = time;
    write(trace);
  };
  gate({"--update"});
  EXPECT_THAT(gate({"--limit", "step_time_ns<=+3sd"}).err, HasSubstr("needs a baseline of at least 5 runs"));
  for (const Nanoseconds time : {9'000, 10'000, 11'000, 10'700}) {  // with 9300: mean 10000, deviation 863
    write_time(time);
    EXPECT_EQ(gate({"--add"}).status, 0);
  }
  write_time(12'589);
  EXPECT_EQ(gate().status, 0) << gate().out;
  EXPECT_THAT(unwrapped(gate().out), HasSubstr("mean 10.0 us, standard deviation 863 ns over 5 runs"));
  write_time(12'590);
  EXPECT_EQ(gate().status, 1);
  EXPECT_EQ(gate({"--limit", "step_time_ns<=+26%"}).status, 0);
}

TEST_F(GateCommandTest, RefusesToAddARunOfAnotherPolicy) {
  gate({"--update"});
  Trace trace = sample_trace();
  trace.policy = preset_policy("keep");
  write(trace);
  EXPECT_THAT(unwrapped(gate({"--add"}).err), HasSubstr("has not the same policy as the baseline"));
}

TEST_F(GateCommandTest, ExplainsByModuleAndLine) {
  Trace trace = sample_trace();
  trace.program.names.insert(trace.program.names.end(), {"layers.3.mlp", "model.py:12"});
  SavedTensor& saved = trace.program.saved.front();
  saved.module = static_cast<std::int32_t>(trace.program.names.size()) - 2;
  saved.line = saved.module + 1;
  write(trace);
  gate({"--update"});
  saved.bytes += 1024;
  *trace.metrics.device_peak_bytes += 1024;
  write(trace);
  const CliRun run = gate({"--explain"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(unwrapped(run.out), HasSubstr("+1.00 KiB 1 to 1 aten::relu layers.*.mlp model.py:12"));
  const auto json = nlohmann::json::parse(gate({"--format", "json"}).out);
  EXPECT_EQ(json["saved_by_site_differences"][0]["line"], "model.py:12");
}

TEST_F(GateCommandTest, ExplainsAPeakThatGrewThoughTheSameIsSaved) {
  gate({"--update"});
  Trace trace = sample_trace();
  *trace.metrics.device_peak_bytes += 1000;
  const auto temporary = static_cast<std::int32_t>(trace.program.storages.size());
  trace.program.storages.push_back({.bytes = 1000});
  const auto op = static_cast<std::int32_t>(trace.program.names.size());
  trace.program.names.emplace_back("aten::new_one");
  trace.program.events.insert(
      trace.program.events.begin() + 1,
      {{EventKind::kOpBegin, op}, {EventKind::kAlloc, temporary}, {EventKind::kOpEnd, op}});
  write(trace);
  const CliRun run = gate({"--explain"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("In use at the peak"), HasSubstr("aten::new_one"), HasSubstr("0 to 1")));
}

TEST_F(GateCommandTest, WritesFurtherReports) {
  gate({"--update"});
  const std::string summary = folder_ / "summary.md";
  const CliRun run = gate({"--report", "markdown=" + summary, "--report", "junit=" + (folder_ / "gate.xml")});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("gate passed"));
  EXPECT_THAT(read_file(summary), HasSubstr("passed, 2 checks"));
  EXPECT_THAT(gate({"--report", "junti=gate.xml"}).err, HasSubstr("Did you mean `junit`?"));
  EXPECT_THAT(gate({"--report", "junit"}).err, HasSubstr("names no file"));
}

/// Gates the models of a configuration file.
class GateConfigTest : public GateCommandTest {
 protected:
  CliRun gate_config(const std::string& text, std::vector<std::string> words = {}) const {
    write_file(config_, text);
    words.insert(words.begin(), {"gate", "--config", config_});
    return run_words(words);
  }
  std::string config_ = folder_ / "offprof.toml";
  std::string models_ =
      "[gate]\nbaselines = \"baseline.json\"\nlimits = [\"device_peak_bytes<=+0%\"]\n"
      "[gate.models.one]\ntrace = \"trace.json\"\n"
      "[gate.models.two]\ntrace = \"trace.json\"\nlimits = [\"device_peak_bytes<=5000B\"]\n";
};

TEST_F(GateConfigTest, ChecksAllModels) {
  EXPECT_THAT(unwrapped(gate_config(models_).err), HasSubstr("Create it: offprof gate"));
  EXPECT_EQ(gate_config(models_, {"--update"}).status, 0);
  const CliRun run = gate_config(models_);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("gates passed: 2"), HasSubstr("one: gate passed")));
  write_larger();
  const CliRun failed = gate_config(models_);
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.out, AllOf(HasSubstr("gates failed: 1 of 2"), HasSubstr("one: gate failed")));
  EXPECT_EQ(gate_config(models_, {"--key", "two"}).status, 0);
  EXPECT_THAT(gate_config(models_, {"--key", "tow"}).err, HasSubstr("Did you mean `two`?"));
}

TEST_F(GateConfigTest, AModelWithAbsoluteLimitsNeedsNoBaselineAmongThoseOfOthers) {
  EXPECT_EQ(gate_config(models_, {"--update", "--key", "one"}).status, 0);
  const CliRun run = gate_config(models_);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("gates passed: 2"));
}

TEST_F(GateConfigTest, NamesTheNextCommandsOfEachModelThatFails) {
  gate_config(models_, {"--update"});
  write_larger();
  const CliRun failed = gate_config(models_, {"--limit", "device_peak_bytes<=1B"});
  for (const char* key : {"one", "two"})
    for (const char* flag : {"--explain", "--update"})
      EXPECT_THAT(failed.out,
                  HasSubstr(fmt::format("offprof gate {} --config {} --key {}\n", flag, config_, key)));
}

TEST_F(GateConfigTest, RefusesAFileThatIsNotThere) {
  const CliRun run = run_words({"gate", "--config", folder_ / "other.toml"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(unwrapped(run.err), AllOf(HasSubstr("there is no file"), HasSubstr("[gate.models.NAME]")));
}

TEST_F(GateConfigTest, RefusesMistakesWithTheirPlace) {
  const auto error_of = [&](const std::string& text) {
    const CliRun run = gate_config(text);
    EXPECT_EQ(run.status, 2);
    return unwrapped(run.err);
  };
  EXPECT_THAT(error_of("[gate]\nlimit = []\n"),
              AllOf(HasSubstr("offprof.toml:2:1"), HasSubstr("Did you mean `limits`?")));
  EXPECT_THAT(error_of("[gate]\nlimits = [\"device_peek_bytes<=1\"]\n[gate.models.a]\ntrace = \"t\"\n"),
              AllOf(HasSubstr("offprof.toml:2:10"), HasSubstr("Did you mean `device_peak_bytes`?")));
  EXPECT_THAT(error_of("[gate]\ndevices = \"host\"\n"), HasSubstr("devices must be a list of texts"));
  EXPECT_THAT(error_of("[gate\n"), HasSubstr("offprof.toml:1:"));
  EXPECT_THAT(error_of("[gate]\n"), HasSubstr("lists no model"));
  EXPECT_THAT(error_of("[gate]\n[gate.models.m]\nprogram = \"m.pt\"\ndevices = [\"virtual:none\"]\n"),
              AllOf(HasSubstr("offprof.toml:4:11"), HasSubstr("none")));
  EXPECT_THAT(error_of("[gate.models.a]\n"), HasSubstr("needs one of program, module and trace"));
  EXPECT_THAT(error_of("[gate.models.a]\ntrace = \"t\"\ninputs = [\"x\"]\n"),
              HasSubstr("inputs has no effect"));
  EXPECT_THAT(error_of("[gates]\n"), HasSubstr("has no key 'gates'"));
}

TEST_F(GateCommandTest, WritesItsReportToAFile) {
  gate({"--update"});
  const std::string report = folder_ / "report.json";
  EXPECT_EQ(gate({"--format", "json", "-o", report}).out, "");
  EXPECT_EQ(nlohmann::json::parse(read_file(report))["ok"], true);
}

}  // namespace
}  // namespace offprof

#include "cli/commands/diff_command.h"

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

DiffReport report_of(const Trace& base, const Trace& now) {
  return {compare(figures_of(base, "base.json"), figures_of(now, "new.json")), 1};
}

Trace changed_trace() {
  Trace trace = sample_trace();
  trace.metrics.device_peak_bytes = 6288;  // 50 % above 4192
  trace.metrics.overlap_ratio.reset();
  trace.policy = preset_policy("keep");
  trace.program.saved[0].bytes = 8192;
  return trace;
}

TEST(DiffCommand, ShowsDifferenceAndPercent) {
  const std::string text = to_text(report_of(sample_trace(), changed_trace()), {});
  EXPECT_THAT(text, AllOf(HasSubstr("+2.05 KiB"), HasSubstr("+50.0%")));
}

TEST(DiffCommand, NamesADifferentPolicy) {
  EXPECT_THAT(to_text(report_of(sample_trace(), changed_trace()), {}), HasSubstr("nothing is offloaded"));
}

TEST(DiffCommand, ShowsWhichOperatorsSaveMore) {
  EXPECT_THAT(to_text(report_of(sample_trace(), changed_trace()), {}),
              AllOf(HasSubstr("aten::relu"), HasSubstr("+4.00 KiB")));
}

TEST(DiffCommand, JsonHasNullWhereAFigureIsMissing) {
  const auto json = to_json(report_of(sample_trace(), changed_trace()));
  const auto& overlap = json["metrics"].back();
  EXPECT_EQ(overlap["key"], "overlap_ratio");
  EXPECT_TRUE(overlap["new"].is_null());
  EXPECT_TRUE(overlap["difference"].is_null());
  EXPECT_TRUE(overlap["percent"].is_null());
}

TEST(DiffCommand, MarksTheSideWithModelledTimes) {
  const DiffReport report = report_of(sample_trace(), virtual_sample_trace());
  EXPECT_THAT(to_text(report, {}),
              AllOf(HasSubstr("base: base.json\n"),
                    HasSubstr("new:  new.json (times modelled, not measured: there was no GPU)\n"),
                    HasSubstr("Times are not comparable: not the same machine.")));
  EXPECT_EQ(to_json(report)["times_are_modelled"], true);
  EXPECT_FALSE(to_json(report_of(sample_trace(), changed_trace())).contains("times_are_modelled"));
}

TEST(DiffCommand, CallsTimesFromDifferentKernelTimesNotComparable) {
  Trace now = virtual_sample_trace();
  now.environment.kernel_times = "h200.json";
  EXPECT_THAT(
      to_text(report_of(virtual_sample_trace(), now), {}),
      AllOf(HasSubstr("h200.json"), HasSubstr("Times are not comparable: not the same kernel times.")));
}

TEST(DiffCommand, ComparesAPredictionWithItsMeasurement) {
  Trace now = sample_trace();
  now.simulated = true;
  EXPECT_THAT(to_text(report_of(sample_trace(), now), {}),
              AllOf(HasSubstr("source of figures  measured  simulated"), Not(HasSubstr("not comparable"))));
}

TEST(DiffCommand, ShowsDifferentAllocatorSettings) {
  Trace now = virtual_sample_trace();
  now.program.allocator->settings = "expandable_segments:True";
  EXPECT_THAT(to_text(report_of(virtual_sample_trace(), now), {}),
              AllOf(HasSubstr("allocator settings"), HasSubstr("expandable_segments:True"),
                    Not(HasSubstr("not comparable"))));
}

TEST(DiffCommand, NeverFailsOnADifference) {
  const TemporaryFolder folder("diff_command");
  write_trace(folder / "a.json", sample_trace());
  write_trace(folder / "b.json.gz", changed_trace());
  const CliRun run = run_words({"diff", folder / "a.json", folder / "b.json.gz"});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err, "");
}

TEST(DiffCommand, ShowsWhereTwoStepsDifferInTime) {
  const TemporaryFolder folder("diff_command_steps");
  Trace slower = sample_trace();
  for (Span& span : slower.timeline.spans)
    if (span.name == "aten::relu") span.duration_ns += 100;
  write_trace(folder / "a.json", sample_trace());
  write_trace(folder / "b.json", slower);
  const std::vector<std::string> words = {"diff", folder / "a.json", folder / "b.json"};
  const auto with = [&](std::vector<std::string> options) {
    options.insert(options.begin(), words.begin(), words.end());
    return run_words(options).out;
  };
  const auto lists = AllOf(HasSubstr("aten::relu #1"), HasSubstr("+100 ns"));
  EXPECT_THAT(with({}), AllOf(HasSubstr("last step"), HasSubstr("-v lists operators"), Not(lists),
                              Not(HasSubstr("cannot be compared"))));
  EXPECT_THAT(with({"-v"}), lists);
  EXPECT_THAT(with({"--top", "5"}), lists);
  const CliRun run = run_words({"diff", folder / "a.json", folder / "b.json", "--format", "json"});
  const auto json = nlohmann::json::parse(run.out)["timeline"];
  EXPECT_EQ(json["operators"]["difference_ns"], 100);
  EXPECT_EQ(json["rest"]["difference_ns"], -100);
  EXPECT_EQ(json["step"]["difference_ns"], 0);
}

TEST(DiffCommand, NamesTheSideWithoutSteps) {
  const TemporaryFolder folder("diff_command_no_steps");
  Trace empty = sample_trace();
  empty.timeline = {};
  write_trace(folder / "a.json", sample_trace());
  write_trace(folder / "empty.json", empty);
  const std::string text = run_words({"diff", folder / "a.json", folder / "empty.json"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("cannot be compared"), HasSubstr("empty.json")));
  const CliRun run = run_words({"diff", folder / "a.json", folder / "empty.json", "--format", "json"});
  EXPECT_TRUE(nlohmann::json::parse(run.out)["timeline"].is_null());
}

TEST(DiffCommand, RejectsATraceWithABadTime) {
  const TemporaryFolder folder("diff_command_bad_time");
  std::string text = format_trace(sample_trace());
  text.replace(text.find("\"dur\":9.300"), 11, "\"dur\":-9.30");
  write_trace(folder / "a.json", sample_trace());
  write_file(folder / "bad.json", text);
  const CliRun run = run_words({"diff", folder / "a.json", folder / "bad.json"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("traceEvents[11]: dur: -9.3"));
  EXPECT_EQ(run.out, "");
}

TEST(DiffCommand, AcceptsAReportOfView) {
  const TemporaryFolder folder("diff_command_report");
  write_trace(folder / "a.json", sample_trace());
  run_words({"view", folder / "a.json", "--format", "json", "-o", folder / "view.json"});
  const CliRun run = run_words({"diff", folder / "a.json", folder / "view.json", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["metrics"].at(0)["difference"], 0);
  EXPECT_TRUE(json["run_differences"].empty());
  EXPECT_TRUE(json["saved_by_op_differences"].empty());
}

}  // namespace
}  // namespace offprof

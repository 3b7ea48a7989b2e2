#include "cli/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/reports/view_report.h"
#include "tests/support/cli_run.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_folder.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const Trace& trace, std::size_t width = 100) {
  return to_text(make_view_report(trace, "t.json", 10), {.width = width});
}

TEST(ViewCommand, ShowsModelDevicePolicyAndLibTorch) {
  EXPECT_THAT(text_of(sample_trace()),
              AllOf(HasSubstr("model.pt"), HasSubstr("host: CPU, 2 threads, LibTorch 2.11.0"),
                    HasSubstr("threshold 16 B"), HasSubstr("bitwise")));
}

TEST(ViewCommand, ShowsIfTheTraceWasMeasuredOrSimulated) {
  Trace trace = sample_trace();
  EXPECT_THAT(text_of(trace), AllOf(HasSubstr("t.json: measured"), Not(HasSubstr("predicted"))));
  trace.simulated = true;
  EXPECT_THAT(text_of(trace), AllOf(HasSubstr("t.json: simulated"), HasSubstr("predicted")));
}

TEST(ViewCommand, MarksTimesOfAVirtualGpuAsModelled) {
  Trace trace = virtual_sample_trace();
  EXPECT_THAT(
      text_of(trace),
      AllOf(HasSubstr("t.json: recorded on a virtual GPU"), HasSubstr("  virtual GPU "),
            HasSubstr("modelled, not measured: there was no GPU\n"), Not(HasSubstr("t.json: measured"))));
  trace.environment.kernel_times = "h200.json";
  trace.simulated = true;
  EXPECT_THAT(text_of(trace), AllOf(HasSubstr("t.json: simulated"),
                                    HasSubstr("there was no GPU; kernel times from h200.json")));
}

TEST(ViewCommand, ShowsTheTracesNotes) {
  EXPECT_THAT(text_of(virtual_sample_trace()), HasSubstr("note       values are read back"));
}

TEST(ViewCommand, SummarizesTheAllocatorsState) {
  Trace trace = virtual_sample_trace();
  EXPECT_THAT(
      text_of(trace, 200),
      HasSubstr("allocator  reserves up to 2.00 MiB; at the start of a step 2.00 MiB in 1 segment, of which "
                "2.00 MiB are free in 2 blocks, the largest 2.00 MiB; settings: default"));
  EXPECT_THAT(text_of(sample_trace()), Not(HasSubstr("allocator")));
  const auto json = to_json(make_view_report(trace, "t.json", 10))["allocator_at_begin"];
  EXPECT_EQ(json.dump(), R"({"segments":1,"reserved_bytes":2097152,"free_bytes":2095104,"free_blocks":2,)"
                         R"("largest_free_block_bytes":2094080})");
}

TEST(ViewCommand, ShowsTheLedgerWithItsSum) {
  Trace trace = sample_trace();
  trace.ledger[{Place::kDevice, PlacementReason::kBelowThreshold}] = {2, 4096};
  EXPECT_THAT(text_of(trace),
              AllOf(HasSubstr("below threshold        2  4.00 KiB   50.0%"),
                    HasSubstr("all                                        3  8.00 KiB  100.0%")));
}

TEST(ViewCommand, ShowsThePeakWithNothingOffloaded) {
  Trace trace = sample_trace();
  // The peak with nothing offloaded is the same, since the one tensor is on the device once in either case.
  EXPECT_THAT(text_of(trace), HasSubstr("  peak 4.09 KiB\n"));
}

TEST(ViewCommand, ExplainsHowToOpenTheTimeline) {
  EXPECT_THAT(text_of(sample_trace()),
              AllOf(HasSubstr("https://ui.perfetto.dev"), HasSubstr("chrome://tracing")));
}

TEST(ViewCommand, DoesNotOfferToOpenATimelineThatIsNotThere) {
  const TestFolder folder;
  const std::string path = folder / "t.json";
  Trace trace = sample_trace();
  write_trace(path, trace);
  EXPECT_THAT(run_words({"view", path}).out, HasSubstr("perfetto"));
  trace.timeline = {};
  write_trace(path, trace);
  EXPECT_THAT(run_words({"view", path}).out,
              AllOf(Not(HasSubstr("perfetto")), HasSubstr("recorded with --no-timeline")));
}

TEST(ViewCommand, OmitsOverlapIfNothingIsCopied) {
  EXPECT_THAT(text_of(sample_trace()), Not(HasSubstr("hidden behind compute")));
  Trace trace = sample_trace();
  trace.metrics.d2h_bytes = 4096;
  EXPECT_THAT(text_of(trace), HasSubstr("25.0% of the copy time is hidden behind compute"));
}

TEST(ViewCommand, Fits80Columns) {
  std::istringstream lines(text_of(virtual_sample_trace(), 80));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), 80U) << line;
  }
}

TEST(ViewCommand, JsonHasTheFiguresUnderTheKeysOfEveryReport) {
  const auto json = to_json(make_view_report(sample_trace(), "t.json", 10));
  EXPECT_EQ(json["measured"]["device_peak_bytes"], 4192);
  EXPECT_EQ(json["policy"]["threshold_bytes"], 16);
  EXPECT_EQ(json["saved_by_op"].at(0)["op"], "aten::relu");
  EXPECT_EQ(json["replayed_memory"]["device_peak_bytes"], 4192);
}

TEST(ViewCommand, RejectsAFileThatIsNoTrace) {
  const CliRun run = run_words({"view", "/nonexistent/t.json"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("/nonexistent/t.json"));
  EXPECT_EQ(run.out, "");
}

TEST(ViewCommand, FailsIfTheOutputCannotBeWritten) {
  const TemporaryFolder folder("view_command");
  write_trace(folder / "t.json", sample_trace());
  EXPECT_EQ(run_words({"view", folder / "t.json", "-o", "/nonexistent/view.txt"}).status, 2);
}

}  // namespace
}  // namespace offprof

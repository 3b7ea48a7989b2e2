#include "cli/reports/exec_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cli_run.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kEnded = R"({"pid": 7, "command": ["/usr/bin/python3", "train.py"], "started_ns": 1,
  "peak_allocated_bytes": 1536, "peak_reserved_bytes": 2097152, "peak_requested_bytes": 1500,
  "out_of_memory_errors": 1, "modelled_time_ns": 2000, "unwritten_calls": ["cudaFoo"],
  "unknown_sizes": ["workspaces of cuFoo"], "value_reads": ["aten::nonzero"], "notes": ["padded by chance"]})";

constexpr const char* kRank =
    R"({"pid": 8, "command": ["python3", "train.py"], "started_ns": 2, "rank": 3, "world_size": 4,
  "peak_allocated_bytes": 1536, "peak_reserved_bytes": 2097152, "peak_requested_bytes": 1500,
  "out_of_memory_errors": 0, "modelled_time_ns": 2000, "unwritten_calls": ["cudaFoo"], "communicators": 2,
  "collectives": [{"name": "all_gather", "calls": 7, "bytes": 4096, "time_ns": 3000, "least_time_ns": 2400,
    "most_time_ns": 3750}]})";

ExecReport report_of(std::vector<GpuProcess> processes) {
  ExecReport report;
  report.profile = "l4";
  report.device_name = "NVIDIA L4";
  report.memory_bytes = kGiB;
  report.processes = std::move(processes);
  return report;
}

TEST(ExecReport, ReadsTheFiguresOfAProcess) {
  const GpuProcess process = parse_process_report(kEnded, "7.json");
  EXPECT_EQ(process.pid, 7);
  EXPECT_THAT(process.command, ElementsAre("/usr/bin/python3", "train.py"));
  EXPECT_TRUE(process.ended);
  EXPECT_EQ(process.peaks.allocated, 1536);
  EXPECT_EQ(process.peaks.reserved, 2097152);
  EXPECT_EQ(process.peaks.requested, 1500);
  EXPECT_EQ(process.out_of_memory_errors, 1);
  EXPECT_EQ(process.modelled_time_ns, 2000);
}

TEST(ExecReport, RejectsAReportWithAnImpossibleFigure) {
  EXPECT_THROW(parse_process_report(R"({"pid": 0, "command": []})", "0.json"), Error);
  EXPECT_THROW(parse_process_report(R"({"pid": 7, "command": [], "modelled_time_ns": 1})", "7.json"), Error);
  EXPECT_THROW(parse_process_report("{", "7.json"), Error);
}

TEST(ExecReport, ShowsAProcessInTheTable) {
  const std::string text = to_text(report_of({parse_process_report(kEnded, "7.json")}), Page{});
  EXPECT_THAT(text,
              AllOf(HasSubstr("Virtual GPU l4: NVIDIA L4, 1.00 GiB"), HasSubstr("python3 train.py"),
                    HasSubstr("1.50 KiB"), HasSubstr("2.00 MiB"), HasSubstr("  no "), HasSubstr("2.00 us")));
  EXPECT_THAT(text, HasSubstr("modelled, not measured"));
}

TEST(ExecReport, WarnsOfMissingFunctionsAndUnknownSizes) {
  const std::string text = to_text(report_of({parse_process_report(kEnded, "7.json")}), Page{});
  EXPECT_THAT(text, AllOf(HasSubstr("does not implement: cudaFoo"), HasSubstr("workspaces of cuFoo")));
}

TEST(ExecReport, WarnsOfValueReadsAndShowsNotes) {
  const std::string text = unwrapped(to_text(report_of({parse_process_report(kEnded, "7.json")}), Page{}));
  EXPECT_THAT(text, AllOf(HasSubstr("process 7 read values from the GPU (aten::nonzero)"),
                          HasSubstr("process 7: padded by chance")));
}

TEST(ExecReport, SaysThatAFailedRanksFiguresAreThoseUntilThen) {
  ExecReport report = report_of({parse_process_report(kRank, "8.json")});
  report.world_size = 4;
  report.exit_status = 1;
  report.ranks_not_run = {2, 0};
  EXPECT_THAT(
      unwrapped(to_text(report, Page{})),
      AllOf(HasSubstr("rank 3, the last one that ran, ended with status 1: its figures are those until then"),
            HasSubstr("not run, since a rank before failed: ranks 2, 0")));
  EXPECT_EQ(to_json(report)["ranks_not_run"], (std::vector<int>{2, 0}));
}

TEST(ExecReport, RanksThatDoNotFitLeadToAdvice) {
  GpuProcess process = parse_process_report(kRank, "8.json");
  process.out_of_memory_errors = 1;
  ExecReport report = report_of({process});
  report.command = {"/usr/bin/python3", "train.py", "--layers", "2"};
  report.advise_options = {"--device", "virtual:l4"};
  report.world_size = 4;
  report.exit_status = 1;
  const std::string text = to_text(report, Page{});
  EXPECT_THAT(unwrapped(text), AllOf(HasSubstr("out of memory, with figures until then: rank 3"),
                                     Not(HasSubstr("the last one that ran"))));
  EXPECT_THAT(text,
              EndsWith("Next: offprof advise train.py --device virtual:l4 --world-size 4 -- --layers 2\n"));
  report.command = {"./train"};
  EXPECT_THAT(to_text(report, Page{}), Not(HasSubstr("Next:")));
}

TEST(ExecReport, TheStatusOfALauncherIsNotThatOfARank) {
  ExecReport report = report_of({parse_process_report(kRank, "8.json")});
  report.exit_status = 1;
  EXPECT_THAT(unwrapped(to_text(report, Page{})),
              HasSubstr("the command ended with status 1: the figures of ranks are those until then"));
}

TEST(ExecReport, AKilledRankHasNoFiguresAndNoRow) {
  ExecReport report =
      report_of({parse_process_report(kRank, "8.json"),
                 parse_process_report(R"({"pid": 9, "command": ["python3"], "rank": 2})", "9.json")});
  report.exit_status = 137;
  const std::string launched = unwrapped(to_text(report, Page{}));
  EXPECT_THAT(launched, AllOf(HasSubstr("rank 2 has no figures: it was killed"), Not(HasSubstr("python3")),
                              HasSubstr("the figures of the other ranks are those until then")));
  report.world_size = 4;
  const std::string alone = unwrapped(to_text(report, Page{}));
  EXPECT_THAT(alone, AllOf(HasSubstr("rank 2, the last one that ran, ended with status 137"),
                           Not(HasSubstr("its figures"))));
}

TEST(ExecReport, NamesBubblesWhereRanksSendMessages) {
  ExecReport report = report_of({parse_process_report(kRank, "8.json")});
  EXPECT_THAT(to_text(report, Page{}), Not(HasSubstr("bubbles")));
  report.processes.front().collectives.sums.push_back({.name = "receive", .calls = 1});
  EXPECT_THAT(unwrapped(to_text(report, Page{})), HasSubstr("times leave out the bubbles of pipelines"));
}

TEST(ExecReport, WarnsOfCollectivesThatDoNotMatch) {
  ExecReport report = report_of({parse_process_report(kRank, "8.json")});
  report.processes.front().collectives.mismatch = "rank 1 calls a, and rank 0 calls b";
  EXPECT_THAT(unwrapped(to_text(report, Page{})),
              HasSubstr("rank 3: rank 1 calls a, and rank 0 calls b: if all ranks ran, they would wait"));
}

TEST(ExecReport, NamesTheAssumptionWhereAProgramFailedThatReadZeros) {
  ExecReport report = report_of({parse_process_report(kEnded, "7.json")});
  EXPECT_THAT(to_text(report, Page{}), Not(HasSubstr("--assume")));
  report.exit_status = 1;
  EXPECT_THAT(unwrapped(to_text(report, Page{})), HasSubstr("--assume balanced-experts"));
}

TEST(ExecReport, ShowsRanksWithTheirCollectives) {
  ExecReport report = report_of({parse_process_report(kRank, "8.json")});
  report.world_size = 4;
  report.nodes = 2;
  const std::string text = to_text(report, Page{});
  EXPECT_THAT(text,
              AllOf(HasSubstr("ranks of 4 on 2 nodes, each alone"), HasSubstr("communicators"),
                    HasSubstr("all_gather"), HasSubstr("4.00 KiB"), HasSubstr("3.00 us (2.40 to 3.75)")));
  EXPECT_THAT(text, Not(HasSubstr("train.py")));
  EXPECT_THAT(unwrapped(text),
              AllOf(HasSubstr("NCCL takes memory of its own"), HasSubstr("rank 3 called CUDA functions")));
  const auto json = to_json(report)["processes"][0];
  EXPECT_EQ(json["rank"], 3);
  EXPECT_EQ(json["collectives"][0]["modelled_time_ns"], 3000);
  EXPECT_EQ(json["collectives"][0]["modelled_time_range_ns"]["low"], 2400);
  EXPECT_EQ(json["estimated_nccl_bytes"][1], 4'000'000'000);
}

TEST(ExecReport, AProcessThatIsNoRankHasNoCollectives) {
  const auto json = to_json(report_of({parse_process_report(kEnded, "7.json")}));
  EXPECT_EQ(json.count("world_size"), 0U);
  EXPECT_EQ(json["processes"][0].count("rank"), 0U);
  EXPECT_EQ(json["processes"][0].count("collectives"), 0U);
}

TEST(ExecReport, AProcessThatWasKilledHasNoFigures) {
  const GpuProcess killed = parse_process_report(R"({"pid": 7, "command": ["python3"]})", "7.json");
  EXPECT_FALSE(killed.ended);
  EXPECT_THAT(to_text(report_of({killed}), Page{}), HasSubstr("process 7 has no figures"));
  EXPECT_EQ(to_json(report_of({killed}))["processes"][0].count("peak_allocated_bytes"), 0U);
}

TEST(ExecReport, SaysWhyAProcessCouldNotOpenTheGpu) {
  const GpuProcess failed =
      parse_process_report(R"({"pid": 7, "command": ["python3"], "problem": "no torch"})", "7.json");
  EXPECT_THAT(to_text(report_of({failed}), Page{}), HasSubstr("could not open the virtual GPU: no torch"));
  EXPECT_EQ(to_json(report_of({failed}))["processes"][0]["problem"], "no torch");
}

TEST(ExecReport, SaysThatNoProcessUsedTheGpu) {
  EXPECT_THAT(to_text(report_of({}), Page{}),
              AllOf(HasSubstr("No process used the GPU"), Not(HasSubstr("allocated"))));
}

}  // namespace
}  // namespace offprof

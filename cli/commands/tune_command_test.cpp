#include "cli/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/reports/tune_report.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "tests/support/cli_run.h"
#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Command lines to paste may be longer, since they are not wrapped.
bool keeps_within_80_columns(const std::string& line) {
  return display_width(line) <= 80 || line.starts_with("Next: ");
}

class TuneCommandTest : public testing::Test {
 protected:
  CliRun tune(const Trace& trace, std::vector<std::string> words = {}, const Terminal& terminal = {}) const {
    write_trace(trace_, trace);
    words.insert(words.begin(), {"tune", "--trace", trace_});
    return run_words(words, terminal);
  }

  TemporaryFolder folder_{"tune_command"};
  std::string trace_ = folder_ / "trace.json";
};

TEST_F(TuneCommandTest, MarksModelledTimes) {
  EXPECT_THAT(tune(virtual_sample_trace()).out, HasSubstr("times      modelled, not measured"));
  EXPECT_THAT(tune(sample_trace()).out, Not(HasSubstr("modelled")));
  const auto is_marked = [&](const Trace& trace) {
    return nlohmann::json::parse(tune(trace, {"--format", "json"}).out).contains("times_are_modelled");
  };
  EXPECT_TRUE(is_marked(virtual_sample_trace()));
  EXPECT_FALSE(is_marked(sample_trace()));
}

TEST_F(TuneCommandTest, AModelledTimeHasARange) {
  const nlohmann::json json = nlohmann::json::parse(
      tune(modelled_sample_trace(), {"--format", "json", "--memory-budget", "1GiB"}).out);
  EXPECT_LT(json["step_time_range_ns"]["low"], json["chosen"]["predicted"]["step_time_ns"]);
  EXPECT_GT(json["step_time_range_ns"]["high"], json["chosen"]["predicted"]["step_time_ns"]);
  EXPECT_TRUE(json["alike"].is_array());
  EXPECT_THAT(tune(modelled_sample_trace()).out, HasSubstr("range      beside the step time"));
  EXPECT_FALSE(
      nlohmann::json::parse(tune(sample_trace(), {"--format", "json"}).out).contains("step_time_range_ns"));
}

TEST_F(TuneCommandTest, ShowsTheMemoryReservedByAnAllocator) {
  EXPECT_THAT(tune(virtual_sample_trace()).out, AllOf(HasSubstr("reserved"), HasSubstr("2.00 MiB")));
  EXPECT_THAT(tune(sample_trace()).out, AllOf(Not(HasSubstr("reserved")), HasSubstr("peak")));
}

TEST_F(TuneCommandTest, ReportsTheLeastDeviceMemoryIfNothingFits) {
  const CliRun run = tune(virtual_sample_trace(), {"--memory-budget", "1MiB"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(unwrapped(run.out),
              HasSubstr("No policy that was found fits into 1.00 MiB. The least memory found is 2.00 MiB "
                        "reserved (2097152 bytes)"));
  EXPECT_THAT(tune(sample_trace(), {"--memory-budget", "1KiB"}).out,
              HasSubstr("No policy fits into 1.00 KiB. The least memory reachable is 4.09 KiB (4192 bytes)"));
}

TEST_F(TuneCommandTest, Fits80Columns) {
  std::istringstream lines(tune(virtual_sample_trace(), {}, {.width = 80}).out);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(keeps_within_80_columns(line)) << line;
}

/// Returns a trace of ten layers with `sizes` alternating sizes, whose tensors cannot all be copied without a
/// slowdown.
Trace chain_trace(int sizes = 3) {
  Trace trace = sample_trace();
  std::vector<LayerSketch> layers(10, {.forward_ns = 40'000, .backward_ns = 80'000});
  for (int i = 0; i < 10; ++i) layers[static_cast<std::size_t>(i)].bytes = (1 + i % sizes) * 100 * kKiB;
  trace.program = ChainSketch::program(layers);
  return trace;
}

/// With tensors of one size a threshold moves all or none, and this link is too slow for all, so a plan wins.
const std::vector<std::string> kPlanWins = {"--link", "500MB/s", "--max-slowdown", "20%"};

/// Returns chain_trace() from a run on a device of 1.5 MB, which had been given more to record the step.
Trace chain_trace_of_small_device() {
  Trace trace = chain_trace();
  trace.environment.device_memory_bytes = 1'500'000;
  trace.settings.device_memory_bytes = kGiB;
  return trace;
}

TEST_F(TuneCommandTest, ChoosesTheFastestThatFitsTheDeviceIfTheStepDoesNot) {
  const auto report = nlohmann::json::parse(tune(chain_trace_of_small_device(), {"--format", "json"}).out);
  EXPECT_GT(report["keep"]["predicted"]["device_peak_bytes"], 1'500'000);
  EXPECT_LE(report["chosen"]["predicted"]["device_peak_bytes"], 1'500'000);
  EXPECT_EQ(report["device_memory_limit_bytes"], 1'500'000);
  const auto budget =
      nlohmann::json::parse(tune(chain_trace(), {"--format", "json", "--memory-budget", "1500000B"}).out);
  EXPECT_EQ(report["chosen"], budget["chosen"]);
}

TEST_F(TuneCommandTest, MarksPoliciesThatDoNotFit) {
  const std::string small = tune(chain_trace_of_small_device()).out;
  EXPECT_THAT(unwrapped(small), HasSubstr("!: does not fit into 1.43 MiB"));
  EXPECT_THAT(small, HasSubstr("\n  keep! "));
  EXPECT_THAT(tune(chain_trace()).out, Not(HasSubstr("!")));
}

TEST_F(TuneCommandTest, NeverChoosesAPolicyThatDoesNotFit) {
  const CliRun run = tune(chain_trace_of_small_device(), {"--link", "1MB/s", "--max-slowdown", "0.001%"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(unwrapped(run.out), AllOf(HasSubstr("fits into 1.43 MiB at no more than 0.001% slowdown"),
                                        HasSubstr("The fastest found that fits takes ")));
}

/// Returns `trace` with activation checkpointing: it saves half as many bytes and takes longer.
Trace in_checkpointed(Trace trace, int sizes) {
  trace.argv = {"offprof", "run", "model.pt", "--checkpoint", "layers.*,head"};
  trace.settings.checkpointed = {"layers.*", "head"};
  std::vector<LayerSketch> layers(10, {.forward_ns = 60'000, .backward_ns = 120'000});
  for (int i = 0; i < 10; ++i) layers[static_cast<std::size_t>(i)].bytes = (1 + i % sizes) * 50 * kKiB;
  trace.program = ChainSketch::program(layers);
  return trace;
}

TEST_F(TuneCommandTest, ChoosesAmongTheConfigurationsOfSeveralTraces) {
  const std::string other = folder_ / "segments.json";
  write_trace(other, in_checkpointed(chain_trace(), 3));
  const auto configurations_for = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--trace", other, "--format", "json"});
    const auto report = nlohmann::json::parse(tune(chain_trace(), words).out);
    EXPECT_EQ(report["trace"],
              report["configurations"][report["configurations"][0]["is_best"] ? 0 : 1]["trace"]);
    return report["configurations"];
  };
  const auto fast = configurations_for({"--memory-budget", "100MiB"});
  EXPECT_TRUE(fast[0]["is_best"]);
  EXPECT_EQ(fast[0]["flags"], "");
  EXPECT_EQ(fast[1]["flags"], "--checkpoint 'layers.*,head'");
  // Over this link nothing can be copied in time.
  const auto small = configurations_for({"--max-slowdown", "60%", "--link", "1MB/s"});
  EXPECT_TRUE(small[1]["is_best"]);
  EXPECT_LT(small[1]["chosen"]["predicted"]["device_peak_bytes"],
            small[0]["chosen"]["predicted"]["device_peak_bytes"]);
  // With nothing offloaded, the second trace's step takes 50 % longer than the first's. The slowdown limit
  // refers to the first's time, not to its own.
  const auto slow = configurations_for({"--max-slowdown", "10%", "--link", "1MB/s"});
  EXPECT_TRUE(slow[0]["is_best"]);
  EXPECT_TRUE(slow[1]["chosen"].is_null());
}

TEST_F(TuneCommandTest, ShowsTheFlagsOfTheBestConfiguration) {
  const std::string other = folder_ / "segments.json";
  write_trace(other, in_checkpointed(chain_trace(), 3));
  const std::string policy = folder_ / "policy.json";
  const CliRun run =
      tune(chain_trace(), {"--trace", other, "--max-slowdown", "60%", "--link", "1MB/s", "-o", policy});
  EXPECT_THAT(run.out,
              HasSubstr("Next: offprof run model.pt --checkpoint 'layers.*,head' --policy " + policy));
}

TEST_F(TuneCommandTest, TheNextCommandWritesThePolicyIfNoFileWasGiven) {
  const std::string next = "Next: offprof tune --trace " + trace_ + " --max-slowdown 20% -o policy.json\n";
  EXPECT_THAT(tune(chain_trace(), {"--max-slowdown", "20%"}).out, HasSubstr(next));
  EXPECT_THAT(tune(chain_trace(), {"--max-slowdown", "20%", "-o", "-"}).err, HasSubstr(next));
}

TEST_F(TuneCommandTest, TheNextRunHasTheAllocatorSettingsOfTheTrace) {
  Trace trace = virtual_sample_trace();
  trace.program.allocator->settings = "expandable_segments:True";
  write_trace(trace_, trace);
  const std::string policy = folder_ / "p.json";
  EXPECT_THAT(run_words({"tune", trace_, "-o", policy}).out,
              HasSubstr("Next: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True offprof run "));
}

TEST_F(TuneCommandTest, AcceptsTracesAsArguments) {
  const std::string other = folder_ / "segments.json";
  write_trace(other, in_checkpointed(chain_trace(), 3));
  const CliRun named = tune(chain_trace(), {"--trace", other, "--format", "json"});
  EXPECT_EQ(run_words({"tune", trace_, other, "--format", "json"}).out, named.out);
}

TEST_F(TuneCommandTest, ShowsProgressOnATerminalOnly) {
  EXPECT_THAT(tune(chain_trace(), {}, {.err_is_terminal = true}).err,
              AllOf(HasSubstr("searching plans; "), HasSubstr("policies replayed so far")));
  EXPECT_EQ(tune(chain_trace()).err, "");
}

TEST_F(TuneCommandTest, ConfigurationsFit80Columns) {
  Trace other = in_checkpointed(chain_trace(), 3);
  other.settings.checkpointed.assign(10, "layers.some.longer.path.*");
  other.settings.parameters = {{"host", 1048576}};
  write_trace(folder_ / "other.json", other);
  std::istringstream lines(tune(chain_trace(), {"--trace", folder_ / "other.json"}, {.width = 80}).out);
  for (std::string line; std::getline(lines, line) && line.find("simulated") == std::string::npos;)
    EXPECT_TRUE(keeps_within_80_columns(line)) << line;
}

/// Returns a step program with saved tensors that are not dense. The second is below TRL's threshold; those
/// after it are more than TRL's stash holds. If tensors come back dense, nodes temporarily take `more_bytes`.
StepProgram program_of_scattered_tensors(Bytes more_bytes) {
  constexpr Bytes kAboveThreshold = 2048, kBelowThreshold = 96;
  ProgramSketch sketch;
  std::vector<SavedId> saved;
  std::vector<Bytes> sizes(9, kAboveThreshold);
  sizes[1] = kBelowThreshold;
  for (const Bytes bytes : sizes) {
    const std::int32_t storage = sketch.alloc(2 * bytes);
    saved.push_back(sketch.save_part(storage, bytes));
    sketch.free(storage);
  }
  for (auto tensor = saved.rbegin(); tensor != saved.rend(); ++tensor) {
    if (more_bytes > 0) sketch.free(sketch.alloc(more_bytes));
    sketch.node(*tensor);
  }
  sketch.backward_end();
  StepProgram program = sketch.program();
  program.saved[0].layout = TensorLayout{"float64", {16, 16}, {32, 1}};
  program.saved[1].layout = TensorLayout{"float64", {4, 3}, {6, 1}};
  return program;
}

TEST_F(TuneCommandTest, MarksAPredictionOfTrlThatMayBeInexact) {
  Trace trace = sample_trace();
  trace.program = program_of_scattered_tensors(0);
  trace.dense_program = program_of_scattered_tensors(50);
  EXPECT_THAT(
      unwrapped(tune(trace).out),
      HasSubstr("the preset trl, which others are compared with: predictions of this setting of TRL's "
                "rules may be inexact"));
  EXPECT_THAT(unwrapped(tune(sample_trace()).out), Not(HasSubstr("may be inexact")));
}

TEST_F(TuneCommandTest, HelpNamesTheAssumedDisk) {
  EXPECT_THAT(
      unwrapped(run_words({"tune", "--help"}).out),
      HasSubstr("Disk to assume, so that placements on it are searched (default: the disk that the run "
                "measured, if any)"));
}

TEST_F(TuneCommandTest, RejectsTracesOfDifferentSteps) {
  Trace other = chain_trace();
  other.settings.optimizer = "sgd";
  write_trace(folder_ / "other.json", other);
  const CliRun run = tune(chain_trace(), {"--trace", folder_ / "other.json", "-o", folder_ / "policy.json"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(unwrapped(run.err), AllOf(HasSubstr("another optimizer"), HasSubstr("Record both")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "policy.json"));
}

TEST_F(TuneCommandTest, SearchesPlansByDefault) {
  const auto parsed = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--format", "json"});
    return nlohmann::json::parse(tune(chain_trace(), std::move(words)).out);
  };
  const auto with = parsed({"--memory-budget", "900KiB"});
  const auto without = parsed({"--memory-budget", "900KiB", "--no-plan"});
  EXPECT_EQ(with["search"]["plans"]["movable"], 10);
  EXPECT_TRUE(with["search"]["plans"]["is_exhaustive"]);
  EXPECT_FALSE(without["search"].contains("plans"));
  EXPECT_LE(with["chosen"]["predicted"]["step_time_ns"], without["chosen"]["predicted"]["step_time_ns"]);
}

TEST_F(TuneCommandTest, ReportsBoundGapBindingAndPricesInTextAndJson) {
  const std::vector<std::string> goal = {"--memory-budget", "850KiB", "-v"};
  const std::string text = unwrapped(tune(chain_trace(), goal).out);
  EXPECT_THAT(text, AllOf(HasSubstr("no policy that keeps or offloads tensors goes below "),
                          HasSubstr("Limited by "), HasSubstr("More resources: another"),
                          HasSubstr("of device memory saves at least"), HasSubstr("as fast saves at least")));
  const auto json =
      nlohmann::json::parse(tune(chain_trace(), {"--memory-budget", "850KiB", "--format", "json"}).out);
  EXPECT_TRUE(json["search"]["family"]["frontier_is_exact"]);
  EXPECT_FALSE(json["frontier_is_exact"]);  // plans were searched for the goal alone
  EXPECT_GE(json["gap"], 0);
  EXPECT_LE(json["bounds"]["goal"]["step_time_ns"], json["chosen"]["predicted"]["step_time_ns"]);
  EXPECT_EQ(json["bounds"]["goal"]["family"], "offload");
  EXPECT_EQ(json["binding"][0]["constraint"], "device_memory");
  EXPECT_GT(json["prices"]["device_memory"]["more_bytes"], 0);
  EXPECT_EQ(json["prices"]["link"]["factor"], 2);
}

TEST_F(TuneCommandTest, TheFrontierOfThresholdsAloneIsExact) {
  const auto json = nlohmann::json::parse(
      tune(chain_trace(), {"--memory-budget", "850KiB", "--no-plan", "--format", "json"}).out);
  EXPECT_TRUE(json["frontier_is_exact"]);
}

TEST_F(TuneCommandTest, NamesTheBindingLimitOfTheGoal) {
  const std::vector<std::string> limits[] = {{"--memory-budget", "850KiB", "-v"},
                                             {"--max-slowdown", "10%", "-v"}};
  EXPECT_THAT(tune(chain_trace(), limits[0]).out, HasSubstr("Limited by the budget of 850 KiB."));
  EXPECT_THAT(tune(chain_trace(), limits[1]).out, HasSubstr("Limited by the slowdown of 10%."));
  const auto json =
      nlohmann::json::parse(tune(chain_trace(), {"--max-slowdown", "10%", "--format", "json"}).out);
  EXPECT_EQ(json["binding"][0]["constraint"], "max_slowdown");
  for (const auto& constraint : json["binding"]) EXPECT_NE(constraint["constraint"], "device_memory");
}

TEST_F(TuneCommandTest, FormatsAGapAsAPercentageWithoutExponent) {
  const Trace trace = chain_trace();
  const TraceSteps steps(trace);
  const Link link{{1e9, 0}, {1e9, 0}};
  TuneReport report;
  report.goal.memory_budget_bytes = 850 * kKiB;
  report.result = offprof::tune(steps, link, report.goal);
  report.why = explain(steps, report.result.chosen->policy, link);
  const auto text_of_gap = [&](double gap) {
    report.result.goal_bound = GoalBound{1000, gap, 1};
    return to_text(report, {.width = 200, .details = true});
  };
  EXPECT_THAT(text_of_gap(1.5), HasSubstr("the chosen policy is 150% above"));
  EXPECT_THAT(text_of_gap(0.041), HasSubstr("the chosen policy is 4.1% above"));
  EXPECT_THAT(text_of_gap(0.0002), HasSubstr("the chosen policy is 0.02% above"));
}

TEST_F(TuneCommandTest, ASlowdownNeedsItsSignAndHasAMaximum) {
  const CliRun run = tune(chain_trace(), {"--max-slowdown", "5"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--max-slowdown"), HasSubstr("5%"), HasSubstr("500%")));
  EXPECT_EQ(tune(chain_trace(), {"--max-slowdown", "1e300%"}).status, 2);
  EXPECT_EQ(tune(chain_trace(), {"--max-slowdown", "10000%"}).status, 0);
}

TEST_F(TuneCommandTest, APolicyThatFitsForSimulateFitsForTune) {
  ProgramSketch sketch;
  for (const Bytes mebibytes : {30, 40, 50}) sketch.free(sketch.alloc(mebibytes * kMiB));
  Trace trace = virtual_sample_trace();
  const auto allocator = trace.program.allocator;
  trace.program = sketch.program();
  trace.program.allocator = allocator;
  trace.environment.device_memory_bytes = kGiB;
  const CliRun run = tune(trace, {"--device-memory", "80MiB", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  const auto predicted = nlohmann::json::parse(run.out)["chosen"]["predicted"];
  EXPECT_LE(predicted["device_reserved_peak_bytes"], 80 * kMiB);
  const CliRun simulated = run_words(
      {"simulate", "--trace", trace_, "--policy", "keep", "--device-memory", "80MiB", "--format", "json"});
  const auto json = nlohmann::json::parse(simulated.out);
  EXPECT_EQ(json["predicted"], predicted);
  EXPECT_EQ(tune(trace, {"--memory-budget", "80MiB"}).status, 1);  // the device keeps its size
}

TEST_F(TuneCommandTest, DeviceMemoryIsABudget) {
  const auto chosen = [&](const char* flag) {
    return nlohmann::json::parse(tune(chain_trace(), {flag, "600KiB", "--format", "json"}).out)["chosen"];
  };
  EXPECT_EQ(chosen("--device-memory"), chosen("--memory-budget"));
  EXPECT_EQ(tune(chain_trace(), {"--device-memory", "1MiB", "--memory-budget", "1MiB"}).status, 2);
}

TEST_F(TuneCommandTest, AProfileSetsMemoryAndLink) {
  const CliRun run = tune(chain_trace(), {"--profile", "l4"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("Memory and link are those of NVIDIA L4"), HasSubstr("the fastest within")));
  EXPECT_THAT(tune(chain_trace(), {"--profile", "l4", "--max-slowdown", "1%"}).out, HasSubstr("1% slowdown"));
  EXPECT_EQ(tune(chain_trace(), {"--profile", "nothing"}).status, 2);
}

TEST_F(TuneCommandTest, SubtractsMemoryOutsideTheAllocatorFromAProfile) {
  Trace trace = chain_trace();
  trace.environment.beside_allocator = {0, kGiB, 0};
  EXPECT_THAT(tune(trace, {"--profile", "l4"}).out,
              HasSubstr("the fastest within " + format_bytes(load_profile("l4").memory_bytes - kGiB)));
}

TEST_F(TuneCommandTest, WritesAPlanThatSimulateAccepts) {
  const std::string policy = folder_ / "policy.json";
  std::vector<std::string> words = kPlanWins;
  words.insert(words.end(), {"-o", policy, "--format", "json"});
  const auto tuned = nlohmann::json::parse(tune(chain_trace(1), words).out);
  ASSERT_TRUE(tuned["chosen"]["policy"].value("tensors", nlohmann::json()).is_array());
  const CliRun run =
      run_words({"simulate", "--trace", trace_, "--policy", policy, "--link", "500MB/s", "--format", "json"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["predicted"], tuned["chosen"]["predicted"]);
}

TEST_F(TuneCommandTest, MarksPlansInTheTableWithin80Columns) {
  const std::string text = tune(chain_trace(1), kPlanWins, {.width = 80}).out;
  EXPECT_THAT(text, testing::ContainsRegex(">  +plan [0-9]+"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(keeps_within_80_columns(line)) << line;
}

}  // namespace
}  // namespace offprof

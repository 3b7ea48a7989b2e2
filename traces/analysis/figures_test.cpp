#include "traces/analysis/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sample_trace.h"
#include "traces/analysis/baselines.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StepSummary sample_figures() {
  return figures_of(sample_trace(), "t.json");
}

std::vector<std::string> what_differs(const StepSummary& base, const StepSummary& now) {
  std::vector<std::string> names;
  for (const RunDifference& difference : run_differences(base, now)) names.push_back(difference.what);
  return names;
}

std::string error_of(const std::string& text) {
  try {
    parse_figures(text, "file.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(StepSummary, AreReadFromATrace) {
  const StepSummary figures = parse_figures(format_trace(sample_trace()), "t.json");
  EXPECT_EQ(figures.metrics, sample_trace().metrics);
  EXPECT_EQ(figures.policy, sample_trace().policy);
  EXPECT_EQ(figures.saved_by_op, (SavedByOp{{"aten::relu", {1, 4096}}}));
}

TEST(StepSummary, AreUnchangedByABaselineFile) {
  const StepSummary base = sample_figures();
  const StepSummary figures = parse_figures(format_baseline(base, "0.1.0"), "b.json");
  EXPECT_EQ(figures.metrics, base.metrics);
  EXPECT_EQ(figures.saved_by_op, base.saved_by_op);
  EXPECT_THAT(run_differences(base, figures), IsEmpty());
}

TEST(StepSummary, KeepVirtualGpuMarksInABaselineFile) {
  Trace trace = virtual_sample_trace();
  trace.environment.kernel_times = "h200.json";
  trace.program.allocator->settings = "max_split_size_mb:64";
  const StepSummary base = figures_of(trace, "t.json");
  const StepSummary figures = parse_figures(format_baseline(base, "0.1.0"), "b.json");
  EXPECT_TRUE(figures.times_are_modelled);
  EXPECT_EQ(figures.environment->kernel_times, "h200.json");
  EXPECT_EQ(figures.allocator_settings, "max_split_size_mb:64");
  EXPECT_THAT(run_differences(base, figures), IsEmpty());
}

TEST(StepSummary, HaveTheMarkForModelledTimesOfASimulationReport) {
  const auto modelled = [](const std::string& more) {
    return parse_figures(R"({"schema": "offprof.report/1", "predicted": {})" + more + "}", "r.json")
        .times_are_modelled;
  };
  EXPECT_FALSE(modelled(""));
  EXPECT_TRUE(modelled(R"(, "times_are_modelled": true)"));
}

TEST(StepSummary, AreEitherMeasuredOrPredictedInAReport) {
  const StepSummary run =
      parse_figures(R"({"schema": "offprof.report/1", "measured": {"d2h_bytes": 5}})", "r.json");
  EXPECT_EQ(run.metrics.d2h_bytes, 5);
  EXPECT_EQ(run.simulated, false);
  const StepSummary simulation =
      parse_figures(R"({"schema": "offprof.report/1", "predicted": {"d2h_bytes": 6}})", "r.json");
  EXPECT_EQ(simulation.metrics.d2h_bytes, 6);
  EXPECT_EQ(simulation.simulated, true);
}

TEST(StepSummary, AreThoseOfTheChosenPolicyInATuneReport) {
  const StepSummary figures = parse_figures(
      R"({"schema": "offprof.report/1", "chosen": {"policy": {"name": "tuned"}, "predicted": {"d2h_bytes": 7}}})",
      "r.json");
  EXPECT_EQ(figures.metrics.d2h_bytes, 7);
  EXPECT_EQ(figures.policy->name, "tuned");
}

TEST(StepSummary, AcceptTheSchemaAnywhereInTheFile) {
  const StepSummary figures =
      parse_figures(R"({"measured": {"d2h_bytes": 5}, "schema": "offprof.report/1"})", "r.json");
  EXPECT_EQ(figures.metrics.d2h_bytes, 5);
}

TEST(StepSummary, RejectAReportWithoutFigures) {
  EXPECT_THAT(error_of(R"({"schema": "offprof.report/1", "command": "doctor"})"),
              HasSubstr("has no figures"));
}

TEST(StepSummary, RejectAnotherVersion) {
  EXPECT_THAT(error_of(R"({"schema": "offprof.baseline/2", "metrics": {}})"),
              HasSubstr("offprof.baseline/2"));
}

TEST(StepSummary, RejectTextThatIsNotJson) {
  EXPECT_NE(error_of("no json"), "no error");
  EXPECT_NE(error_of(""), "no error");
}

TEST(StepSummary, OfABaselineHaveNoUnknownKeys) {
  const std::string text = format_baseline(sample_figures(), "0.1.0");
  const auto error_with = [&](const std::string& key, const std::string& other) {
    std::string changed = text;
    changed.replace(changed.find('"' + key + '"'), key.size() + 2, '"' + other + '"');
    return error_of(changed);
  };
  EXPECT_THAT(error_with("device_peak_bytes", "device_peek_bytes"),
              HasSubstr("unknown key 'device_peek_bytes'"));
  EXPECT_THAT(error_with("settings", "tuning"), HasSubstr("unknown key 'tuning'"));
}

TEST(StepSummary, RecognizeABaseline) {
  EXPECT_TRUE(is_baseline(format_baseline(sample_figures(), "0.1.0")));
  EXPECT_FALSE(is_baseline(format_trace(sample_trace())));
  EXPECT_FALSE(is_baseline("no json"));
}

TEST(RunDifferences, ListEveryDifference) {
  StepSummary now = sample_figures();
  now.settings->inputs = {"float32[8,3]"};
  now.environment->threads = 4;
  now.policy = preset_policy("keep");
  now.simulated = true;
  EXPECT_THAT(what_differs(sample_figures(), now),
              ElementsAre("inputs", "threads", "policy", "source of figures"));
}

TEST(RunDifferences, IncludeCheckpointedModules) {
  Trace trace = sample_trace();
  trace.settings.checkpointed = {"layers.*", "head"};
  const StepSummary now = parse_figures(format_baseline(figures_of(trace, "t.json"), "0.1.0"), "b.json");
  EXPECT_EQ(run_differences(sample_figures(), now),
            (std::vector<RunDifference>{{"checkpoint", "none", "layers.* head"}}));
}

TEST(RunDifferences, DistinguishAVirtualGpuFromAMeasurement) {
  StepSummary base = sample_figures(), now = sample_figures();
  now.times_are_modelled = true;
  EXPECT_EQ(run_differences(base, now),
            (std::vector<RunDifference>{{"source of figures", "measured", "virtual GPU"}}));
  base = now;
  now.simulated = true;
  EXPECT_EQ(run_differences(base, now),
            (std::vector<RunDifference>{{"source of figures", "virtual GPU", "simulated on a virtual GPU"}}));
}

TEST(RunDifferences, IncludeKernelTimesIfTimesAreModelled) {
  Trace trace = virtual_sample_trace();
  const StepSummary base = figures_of(trace, "t.json");
  trace.environment.kernel_times = "h200.json";
  const StepSummary now = figures_of(trace, "t.json");
  EXPECT_EQ(run_differences(base, now), (std::vector<RunDifference>{{"kernel times", "none", "h200.json"}}));
  EXPECT_THAT(what_differs(sample_figures(), now), ElementsAre("device", "machine", "source of figures"));
}

TEST(RunDifferences, IncludeAllocatorSettingsIfBothSidesHaveThem) {
  Trace trace = virtual_sample_trace();
  const StepSummary base = figures_of(trace, "t.json");
  trace.program.allocator->settings = "expandable_segments:True";
  EXPECT_EQ(run_differences(base, figures_of(trace, "t.json")),
            (std::vector<RunDifference>{{"allocator settings", "default", "expandable_segments:True"}}));
}

TEST(TimeDifference, ReturnsADifferenceThatMakesTimesIncomparable) {
  EXPECT_EQ(time_difference({{"policy", "keep", "trl"}, {"allocator settings", "", "x"}}), nullptr);
  for (const char* what : {"machine", "threads", "kernel times", "source of figures"}) {
    const std::vector<RunDifference> differences = {{"policy", "keep", "trl"}, {what, "a", "b"}};
    ASSERT_NE(time_difference(differences), nullptr) << what;
    EXPECT_EQ(time_difference(differences)->what, what);
  }
}

TEST(RunDifferences, TreatTheSameFileUnderAnotherNameAsTheSameModel) {
  StepSummary now = sample_figures();
  now.model->name = "copy.pt";
  EXPECT_THAT(what_differs(sample_figures(), now), IsEmpty());
}

TEST(RunDifferences, CompareModelsByNameIfASideHasNoFingerprint) {
  StepSummary now =
      parse_figures(R"({"schema": "offprof.report/1", "measured": {}, "model": "model.pt"})", "r.json");
  EXPECT_THAT(what_differs(sample_figures(), now), IsEmpty());
  now.model->name = "other.pt";
  EXPECT_THAT(what_differs(sample_figures(), now), ElementsAre("model"));
}

TEST(RunDifferences, IgnorePropertiesThatASideLacks) {
  EXPECT_THAT(run_differences(sample_figures(), StepSummary{}), IsEmpty());
}

}  // namespace
}  // namespace offprof

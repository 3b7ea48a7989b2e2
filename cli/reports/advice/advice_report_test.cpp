#include "cli/reports/advice/advice_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/sample_trace.h"
#include "tests/support/sample_way.h"

namespace offprof {
namespace {

/// Trace of a model with 7 billion parameters in bfloat16, whose batch is 4 x 4096 tokens.
Trace plain_trace() {
  Trace trace = virtual_sample_trace();
  trace.model.parameters = 7'000'000'000;
  trace.settings.inputs = {"int64[4,4096]<32000"};
  trace.step_size.flops = 6.0 * 7e9 * 4 * 4096;
  trace.program.saved[0].layout = TensorLayout{"bfloat16", {32, 64}, {64, 1}};
  return trace;
}

class AdviceReportTest : public testing::Test {
 protected:
  AdviceReportTest() {
    Advice& advice = report_.advice;
    advice.goal.most_memory = 78 * kGiB;
    advice.nothing = sample_way("keep everything", 122 * kGiB, 1'249'000'000, false);
    Way best = sample_way("checkpoint 4 of 32 layers.* + recompute + offload 203 tensors", 77 * kGiB,
                          1'311'000'000, true);
    best.configuration = {.checkpointed = {"layers.0", "layers.8", "layers.16", "layers.24"},
                          .expands_segments = true};
    best.policy.name = "advised";
    best.policy.threshold_bytes = 0;
    best.measured = best.predicted;
    advice.ways = {best, sample_way("offload all", 60 * kGiB + kGiB / 2, 2'100'000'000, true),
                   sample_way("TRL's and torchtune's defaults", 102 * kGiB, 2'000'000'000, false)};
    advice.floor = {.parameters = 12 * kGiB, .gradients = 12 * kGiB, .optimizer = 24 * kGiB, .inputs = kMiB};
    advice.unrecorded = {{{.parameters = ParameterSettings{"host", {}}}, "the model has no layers"}};
    advice.recordings = 9;
    advice.replayed = 420;
    report_.instructions = {
        .run = {"run", "7b.pt", "--checkpoint", "layers.0,layers.8", "--policy", "policy.json"},
        .policy = "policy.json",
        .variables = {{kAllocatorVariable, "expandable_segments:True"}}};
    report_.peak_flops = 989.4e12;
    report_.notes = {"values are read back from the device"};
  }

  void put_all_ways_beyond_the_limits() {
    for (Way& way : report_.advice.ways) {
      way.is_within = false;
      way.measured.reset();
    }
  }

  std::string text(std::size_t width) const { return to_text(report_, {.width = width}); }

  Trace plain_ = plain_trace();
  AdviceReport report_{{}, plain_};
};

TEST_F(AdviceReportTest, OpensWithTheVerdictIn120Columns) {
  EXPECT_EQ(text(120), R"(Does not fit: a step takes 122 GiB, 44.0 GiB more than 78.0 GiB.
Recommended: checkpoint 4 of 32 layers.* + recompute + offload 203 tensors (expandable segments). It takes 77.0 GiB.
Cost: 1.311 s (+5.0%), 12497 tokens/s, MFU 53%, against 1.249 s, 13118 tokens/s, MFU 56% with nothing done.

     way                                                              memory     step
  ─  ─────────────────────────────────────────────────────────────  ────────  ───────  ──────
  !  keep everything                                                 122 GiB  1.249 s   +0.0%
  >  checkpoint 4 of 32 layers.* + recompute + offload 203 tensors  77.0 GiB  1.311 s   +5.0%
     offload all                                                    60.5 GiB  2.100 s  +68.1%
  !  TRL's and torchtune's defaults                                  102 GiB  2.000 s  +60.1%
!: not within the limits
times      modelled, not measured: there was no GPU
Memory without activations: 48.0 GiB (weights 12.0 GiB, gradients 12.0 GiB, optimizer states 24.0 GiB, inputs and
buffers 1.00 MiB).
not recorded: --offload-params host: the model has no layers
A run of this way measured exactly the predicted memory and time.
9 recordings, 420 simulated policies
note: values are read back from the device
Next: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True offprof run 7b.pt --checkpoint layers.0,layers.8 --policy policy.json -o advised.json.gz
In your own training, as far as each engine can (export says what is left out):
  offprof export policy.json --trace advised.json.gz --to pytorch
  offprof export policy.json --trace advised.json.gz --to transformers
  offprof export policy.json --trace advised.json.gz --to trl
)");
}

TEST_F(AdviceReportTest, CutsTheNamesOfWaysIn80Columns) {
  const std::string narrow = text(80);
  EXPECT_TRUE(narrow.starts_with(R"(Does not fit: a step takes 122 GiB, 44.0 GiB more than 78.0 GiB.
Recommended: checkpoint 4 of 32 layers.* + recompute + offload 203 tensors
(expandable segments). It takes 77.0 GiB.
Cost: 1.311 s (+5.0%), 12497 tokens/s, MFU 53%, against 1.249 s, 13118 tokens/s,
MFU 56% with nothing done.

     way                                                 memory     step
  ─  ────────────────────────────────────────────────  ────────  ───────  ──────
  !  keep everything                                    122 GiB  1.249 s   +0.0%
  >  checkpoint 4 of 32 layers.* + recompute + offlo…  77.0 GiB  1.311 s   +5.0%
     offload all                                       60.5 GiB  2.100 s  +68.1%
  !  TRL's and torchtune's defaults                     102 GiB  2.000 s  +60.1%
!: not within the limits
times      modelled, not measured: there was no GPU
Memory without activations: 48.0 GiB (weights 12.0 GiB, gradients 12.0 GiB,
optimizer states 24.0 GiB, inputs and buffers 1.00 MiB).
)")) << narrow;
}

/// `offload all` waits for copies for the time that the recommended way computes more, and so may be as fast.
TEST_F(AdviceReportTest, MarksWaysThatTheModelCannotTellApart) {
  Advice& advice = report_.advice;
  advice.nothing.time = {1'249'000'000, {{"products", -100'000'000, 200'000'000}}};
  advice.ways[0].time = {1'311'000'000, {{"products", -105'000'000, 210'000'000}}};
  advice.ways[1].predicted.step_time_ns = 1'320'000'000;
  advice.ways[1].time = {1'320'000'000,
                         {{"products", -100'000'000, 200'000'000}, {"copies", -10'000'000, 25'000'000}}};
  EXPECT_THAT(text(120),
              testing::HasSubstr("Cost: 1.311 s (1.21 to 1.52; +5.0%), 12497 tokens/s, MFU 53%, against "
                                 "1.249 s (1.15 to 1.45), 13118"));
  EXPECT_THAT(text(120), testing::HasSubstr("  ~  offload all"));
  EXPECT_THAT(text(120), testing::HasSubstr("  !  keep everything"));
  EXPECT_THAT(text(120),
              testing::HasSubstr("~: the model cannot tell which is faster, this or the recommended way\n"));
  const nlohmann::ordered_json json = to_json(report_);
  EXPECT_EQ(json["recommended"]["step_time_range_ns"]["low"], 1'206'000'000);
  EXPECT_LT(json["ways"][1]["more_than_recommended_ns"]["low"], 0);
  EXPECT_GT(json["ways"][1]["more_than_recommended_ns"]["high"], 0);
  EXPECT_FALSE(json["ways"][2].contains("more_than_recommended_ns"));
}

TEST_F(AdviceReportTest, SaysThatNothingNeedsToBeDone) {
  report_.advice.does_nothing = true;
  report_.advice.nothing = sample_way("keep everything", 70 * kGiB, 900'000'000, true);
  EXPECT_TRUE(
      text(120).starts_with("Fits: a step takes 70.0 GiB of 78.0 GiB, with 8.00 GiB left.\n"
                            "Recommended: keep everything. It takes 70.0 GiB.\n"
                            "A step takes 900 ms, 18204 tokens/s, MFU 77%.\n"))
      << text(120);
}

TEST_F(AdviceReportTest, SaysWhatTheProblemIsIfActivationsAreNot) {
  report_.advice.floor = {
      .parameters = 13 * kGiB, .gradients = 13 * kGiB, .optimizer = 62 * kGiB, .workspaces = kGiB};
  put_all_ways_beyond_the_limits();
  for (Way& way : report_.advice.ways) way.predicted.device_reserved_peak_bytes = 115 * kGiB;
  EXPECT_THAT(
      text(120),
      testing::HasSubstr(
          R"(Memory without activations: 89.0 GiB (weights 13.0 GiB, gradients 13.0 GiB, optimizer states 62.0 GiB, workspaces and
other tensors 1.00 GiB). Activations are not the problem: this alone is 11.0 GiB more than 78.0 GiB.

     by arithmetic                            without activations
  ─  ───────────────────────────────────────  ───────────────────
  !  optimizer states in bfloat16                        53.1 GiB
     optimizer states of 8 bits                          40.2 GiB
     no optimizer states (SGD)                           27.0 GiB
     LoRA: frozen weights, few trained ones              14.0 GiB
     LoRA with frozen weights of 4 bits                  4.67 GiB
     FSDP over 2 ranks, each with this batch             45.0 GiB
!: does not fit into 78.0 GiB with 26.0 GiB for the rest of a step, the least that was found
)")) << text(120);
}

TEST_F(AdviceReportTest, ProposesNoShardingOfAProgramThatIsSharded) {
  report_.advice.floor = {.parameters = 13 * kGiB, .gradients = 13 * kGiB, .optimizer = 62 * kGiB};
  put_all_ways_beyond_the_limits();
  EXPECT_THAT(text(120), testing::HasSubstr("FSDP over"));
  plain_.program.storages.push_back({1, StorageRole::kGathered});
  EXPECT_THAT(text(120), testing::Not(testing::HasSubstr("FSDP over")));
}

TEST_F(AdviceReportTest, NamesNoOptionForTheOptimizerOfAScript) {
  report_.advice.floor = {.parameters = 13 * kGiB, .gradients = 13 * kGiB, .optimizer = 62 * kGiB};
  put_all_ways_beyond_the_limits();
  const auto options = [&] {
    const nlohmann::ordered_json json = to_json(report_);
    return std::ranges::count_if(json["floor"]["remedies"],
                                 [](const auto& remedy) { return remedy.contains("optimizer"); });
  };
  EXPECT_GT(options(), 0);
  plain_.settings.optimizer = kOfScript;
  EXPECT_EQ(options(), 0);
  EXPECT_THAT(text(120), testing::HasSubstr("optimizer states of 8 bits"));
}

TEST_F(AdviceReportTest, SplitsWhatAnOptimizerKeeps) {
  report_.advice.floor = {.parameters = kGiB, .master_weights = 2 * kGiB, .optimizer = 4 * kGiB};
  EXPECT_THAT(text(1000),
              testing::HasSubstr("(weights 1.00 GiB, master weights 2.00 GiB, optimizer states 4.00 GiB)"));
  report_.advice.floor = {.parameters = kGiB, .optimizer = 4 * kGiB, .is_optimizer_mixed = true};
  EXPECT_THAT(text(1000), testing::HasSubstr("optimizer states and workspaces 4.00 GiB)"));
}

TEST_F(AdviceReportTest, HasNoMfuOfAModelInFloat32) {
  plain_.program.saved[0].layout = TensorLayout{"float32", {32, 32}, {32, 1}};
  EXPECT_THAT(text(120), testing::Not(testing::HasSubstr("MFU")));
  EXPECT_THAT(text(120), testing::HasSubstr("12497 tokens/s"));
}

TEST_F(AdviceReportTest, CountsSamplesOfOtherInputs) {
  plain_.settings.inputs = {"float32[8,3,96,96]"};
  EXPECT_THAT(
      text(120),
      testing::HasSubstr("Cost: 1.311 s (+5.0%), 6.1 samples/s, MFU 53%, against 1.249 s, 6.4 samples/s"));
}

TEST_F(AdviceReportTest, CountsTheTokensOfAScript) {
  plain_.settings.inputs = {"--batch", "4"};
  plain_.step_size.tokens = 4 * 4096;
  EXPECT_THAT(text(120), testing::HasSubstr("Cost: 1.311 s (+5.0%), 12497 tokens/s, MFU 53%, against "));
  const nlohmann::ordered_json json = to_json(report_);
  EXPECT_NEAR(json["recommended"]["tokens_per_second"], 12497, 1);
  EXPECT_NEAR(json["recommended"]["mfu"], 0.53, 0.005);
  EXPECT_NEAR(json["nothing"]["mfu"], 0.56, 0.005);
}

TEST_F(AdviceReportTest, SaysHowMuchTheMeasurementDiffers) {
  report_.advice.ways[0].measured->step_time_ns = 1'400'000'000;
  EXPECT_THAT(text(120),
              testing::HasSubstr("A run of this way measured these figures; predicted were 77.0 GiB and "
                                 "1.31 s.\n"));
}

TEST_F(AdviceReportTest, WritesThePolicyBeforeTheRun) {
  report_.instructions.policy_command = {"advise", "7b.pt", "-o", "policy.json"};
  EXPECT_THAT(text(120),
              testing::HasSubstr("Next: offprof advise 7b.pt -o policy.json\n"
                                 "Then: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True offprof run 7b.pt "
                                 "--checkpoint layers.0,layers.8 --policy policy.json -o advised.json.gz\n"));
}

TEST_F(AdviceReportTest, NamesOnlyEnginesThatTheScriptUses) {
  report_.instructions.source = "from transformers import Trainer\n";
  EXPECT_THAT(text(120),
              testing::AllOf(testing::HasSubstr("--to pytorch"), testing::HasSubstr("--to transformers"),
                             testing::Not(testing::HasSubstr("--to trl"))));
}

TEST_F(AdviceReportTest, TrainsNoScriptWhoseFirstStepsDoNotFit) {
  report_.instructions.is_script = true;
  const char* const in_training = "In your own training:\n";
  EXPECT_THAT(text(120), testing::HasSubstr(in_training));
  report_.instructions.first_steps_exceed = true;
  EXPECT_THAT(text(120), testing::Not(testing::HasSubstr(in_training)));
  report_.advice.ways[0].configuration = {};
  EXPECT_THAT(text(120), testing::AllOf(testing::HasSubstr("with offloading:"),
                                        testing::Not(testing::HasSubstr("without a change"))));
}

TEST_F(AdviceReportTest, KnowsWhetherTheFirstStepsFit) {
  Environment environment;
  environment.times_are_modelled = true;
  environment.device_memory_bytes = 64 * kGiB;
  Way kept = report_.advice.ways[0];
  kept.policy = preset_policy("keep");
  kept.measured = std::nullopt;
  const Way& way = report_.advice.ways[0];
  for (const auto& [peak, exceeds] : {std::pair(63 * kGiB, false), std::pair(65 * kGiB, true)}) {
    kept.predicted.device_peak_bytes = peak;
    kept.predicted.device_reserved_peak_bytes = peak;
    Advice advice = report_.advice;
    advice.ways = {way, kept};
    EXPECT_EQ(first_steps_exceed(advice, way, environment), exceeds);
  }
}

TEST_F(AdviceReportTest, ShowsHowAScriptTrainsOnUnderThePolicy) {
  WayInstructions& instructions = report_.instructions;
  instructions = {.run = {"run", "train.py", "--device", "virtual", "--policy", "policy.json", "--", "-x"},
                  .policy = "policy.json",
                  .is_script = true};
  report_.advice.ways[0].configuration = {};
  const auto shows = testing::HasSubstr(R"(In your own training, with forward and loss within the context:
  offloading = offprof.OffloadActivations("policy.json")
  with offloading:
      loss = model(batch)
or without a change, if the first steps fit with nothing offloaded:
  offprof run train.py --policy policy.json --continue -- -x
or with other engines, as far as each can (export says what is left out):
  offprof export)");
  EXPECT_THAT(text(120), shows);
  report_.advice.ways[0].policy.rules = {{.placement = {"", Place::kRecompute}}};
  EXPECT_THAT(text(120), shows);
  instructions.is_job = true;
  EXPECT_THAT(text(120), testing::AllOf(testing::HasSubstr("with offloading:\n"),
                                        testing::Not(testing::HasSubstr("--continue"))));
  instructions.is_job = false;
  instructions.variables = {{"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"}};
  EXPECT_THAT(text(120),
              testing::HasSubstr("# in the environment: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));
}

TEST_F(AdviceReportTest, CountsTraces) {
  report_.is_of_traces = true;
  EXPECT_THAT(text(120), testing::HasSubstr("9 traces, 420 simulated policies\n"));
  report_.advice.recordings = 1;
  EXPECT_THAT(text(120), testing::HasSubstr("\n1 trace, 420 simulated policies\n"));
}

TEST_F(AdviceReportTest, HasTheSameFiguresInJson) {
  const nlohmann::ordered_json json = to_json(report_);
  EXPECT_EQ(json["recommended"]["name"], "checkpoint 4 of 32 layers.* + recompute + offload 203 tensors");
  EXPECT_EQ(json["recommended"]["flags"], "--checkpoint layers.0,layers.8,layers.16,layers.24");
  EXPECT_EQ(json["recommended"]["expandable_segments"], true);
  EXPECT_EQ(json["recommended"]["predicted"]["device_reserved_peak_bytes"], 77 * kGiB);
  EXPECT_EQ(json["recommended"]["measured"], json["recommended"]["predicted"]);
  EXPECT_EQ(json["nothing"]["is_within"], false);
  EXPECT_EQ(json["ways"].size(), 3U);
  EXPECT_EQ(json["floor"]["optimizer_bytes"], 24 * kGiB);
  EXPECT_EQ(json["unrecorded"][0]["flags"], "--offload-params host");
  EXPECT_EQ(json["unrecorded"][0]["reason"], "the model has no layers");
  EXPECT_EQ(json["run"][0], "run");
  EXPECT_FALSE(json.contains("policy_command"));
}

}  // namespace
}  // namespace offprof

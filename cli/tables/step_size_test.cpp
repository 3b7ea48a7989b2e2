#include "cli/tables/step_size.h"

#include <gtest/gtest.h>

#include "tests/support/layered_trace.h"

namespace offprof {
namespace {

TEST(StepSize, CountsTokensOfIntegersWithTwoDimensions) {
  const StepSize size = size_of_inputs({"int64[4,128]<512"});
  EXPECT_EQ(size.samples, 4);
  EXPECT_EQ(size.tokens, 512);
}

TEST(StepSize, HasNoTokensForOtherInputs) {
  for (const char* input : {"float32[8,3,96,96]", "int64[8]<10", "int64[8,3,96]<10", "int32[8,3]<10"}) {
    EXPECT_EQ(size_of_inputs({input}).samples, 8) << input;
    EXPECT_EQ(size_of_inputs({input}).tokens, std::nullopt) << input;
  }
}

TEST(StepSize, IsUnknownForTheArgumentsOfAScript) {
  for (const char* word : {"--batch", "4", "[4,128]", "int64[a,b]", "float32[]"})
    EXPECT_EQ(size_of_inputs({word}).samples, std::nullopt) << word;
}

TEST(StepSize, HasTheCountedTokensOfAScript) {
  Trace trace;
  trace.step_size = {.tokens = 512, .flops = 3e9};
  trace.settings.inputs = {"--batch", "4"};
  EXPECT_EQ(step_size(trace), (StepSize{.tokens = 512, .flops = 3e9}));
  trace.settings.inputs = {"float32[8,3,96,96]"};
  EXPECT_EQ(step_size(trace), (StepSize{.samples = 8, .flops = 3e9}));
}

TEST(StepSize, RatesHaveTheDigitsThatMatter) {
  EXPECT_EQ(rate_text(size_of_inputs({"float32[8,3,96,96]"}), 1.25), "6.4 samples/s");
  EXPECT_EQ(rate_text(size_of_inputs({"float32[2048,256]"}), 0.001), "2048000 samples/s");
  EXPECT_EQ(rate_text(size_of_inputs({"int64[4,128]<512"}), 0.5), "1024 tokens/s");
  EXPECT_EQ(rate_text({}, 1), "");
}

TEST(StepSize, RatesAreInJsonTooIfTheyAreKnown) {
  Metrics metrics;
  metrics.step_time_ns = 500'000'000;
  EXPECT_EQ(rate_to_json({.tokens = 512}, metrics).dump(), R"({"tokens_per_second":1024.0})");
  EXPECT_EQ(rate_to_json({.samples = 8}, metrics).dump(), R"({"samples_per_second":16.0})");
  EXPECT_EQ(rate_to_json({}, metrics).dump(), "{}");
  EXPECT_EQ(rate_to_json({.tokens = 512}, {}).dump(), "{}");
  EXPECT_EQ(rate_beside({.tokens = 512}, metrics), ", 1024 tokens/s");
  EXPECT_EQ(rate_beside({.tokens = 512}, {}), "");
}

TEST(StepSize, TellsTheTypeOfMostSavedBytes) {
  const LayerSave half{"m", 100, "aten::mm", "bfloat16"}, full{"m", 99, "aten::mm", "float32"};
  EXPECT_TRUE(computes_in_bfloat16(layered_trace({half, full}).program));
  EXPECT_FALSE(computes_in_bfloat16(layered_trace({half, full, full}).program));
}

}  // namespace
}  // namespace offprof

#include "cli/advice/step_resizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sample_trace.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::ElementsAre;

using Words = std::vector<std::string>;

Trace trace_with(const Words& inputs) {
  Trace trace = virtual_sample_trace();
  trace.settings.inputs = inputs;
  return trace;
}

TEST(StepResizer, ChangesTheFirstDimensionOfAModelsInputs) {
  const Trace trace = trace_with({"int64[4,128]<512", "float32[4,1,128,128]", "bool[1,4]"});
  const StepResizer resizer(StepResizer::Dimension::kBatch, "");
  EXPECT_EQ(resizer.present_size({"run", "m.pt"}, trace), 4);
  EXPECT_THAT(resizer.resized({"run", "m.pt", "--input", "int64[4,128]<512", "--loss", "sum"}, trace, 9),
              ElementsAre("run", "m.pt", "--loss", "sum", "--input", "int64[9,128]<512", "--input",
                          "float32[9,1,128,128]", "--input", "bool[1,4]"));
}

TEST(StepResizer, ChangesTheSequenceOfAModelsInputs) {
  const Trace trace = trace_with({"float32[128]", "int64[4,128]<512", "bool[4,1,128,128]"});
  const StepResizer resizer(StepResizer::Dimension::kSequence, "");
  EXPECT_EQ(resizer.present_size({"run", "m.pt"}, trace), 128);
  EXPECT_THAT(resizer.resized({"run", "m.pt"}, trace, 200),
              ElementsAre("run", "m.pt", "--input", "float32[128]", "--input", "int64[4,200]<512", "--input",
                          "bool[4,1,200,200]"));
}

TEST(StepResizer, ChangesAnArgumentOfAScript) {
  const Trace trace = trace_with({});
  const auto resized = [&](const std::string& name, const Words& arguments) {
    Words words = {"run", "train.py", "--batch-size", "1", "--"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    words = StepResizer(StepResizer::Dimension::kBatch, name).resized(words, trace, 9);
    return Words(words.begin() + 5, words.end());
  };
  EXPECT_THAT(resized("--batch-size", {"--batch-size", "8", "-x"}), ElementsAre("--batch-size", "9", "-x"));
  EXPECT_THAT(resized("--batch-size", {"--batch-size=8"}), ElementsAre("--batch-size=9"));
  EXPECT_THAT(resized("data.batch", {"data.batch=8", "data.batch_max=7"}),
              ElementsAre("data.batch=9", "data.batch_max=7"));
}

TEST(StepResizer, RefusesProgramsWithoutTheSize) {
  const Words script = {"run", "train.py", "--", "--batch-size", "many"};
  EXPECT_THROW(
      StepResizer(StepResizer::Dimension::kBatch, "--batch-size").present_size(script, trace_with({})),
      Error);
  EXPECT_THROW(StepResizer(StepResizer::Dimension::kBatch, "-b").present_size(script, trace_with({})), Error);
  EXPECT_THROW(
      StepResizer(StepResizer::Dimension::kSequence, "").present_size({"run"}, trace_with({"float32[8,3]"})),
      Error);
}

}  // namespace
}  // namespace offprof

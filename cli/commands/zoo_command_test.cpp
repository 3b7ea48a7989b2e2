#include "cli/commands/zoo_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cli_run.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ZooCommand, ListsEveryModelWithItsSizes) {
  const CliRun run = run_words({"zoo", "list"});
  EXPECT_EQ(run.status, 0);
  for (const ZooModel& model : zoo_models()) {
    EXPECT_THAT(run.out, HasSubstr(model.name + ": "));
    for (const ZooSize& size : model.sizes) EXPECT_THAT(run.out, HasSubstr("--" + size.name));
  }
}

TEST(ZooCommand, ListsThemAsJson) {
  const auto json = nlohmann::json::parse(run_words({"zoo", "list", "--format", "json"}).out);
  EXPECT_EQ(json["command"], "zoo");
  EXPECT_EQ(json["models"].size(), zoo_models().size());
}

TEST(ZooCommand, RejectsAnUnknownModel) {
  const CliRun run = run_words({"zoo", "make", "mpl", "-o", "model.pt"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("mpl"));
}

TEST(ZooCommand, RejectsASizeThatTheModelDoesNotHave) {
  const CliRun run = run_words({"zoo", "make", "mlp", "-o", "model.pt", "--image", "32"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("mlp"), HasSubstr("image")));
}

TEST(ZooCommand, ListsPresets) {
  EXPECT_THAT(run_words({"zoo", "list"}).out, AllOf(HasSubstr("--preset 7b: "), HasSubstr("--preset 70b: ")));
}

TEST(ZooCommand, RejectsAnUnknownPreset) {
  EXPECT_THAT(run_words({"zoo", "make", "llama", "-o", "model.pt", "--preset", "7"}).err,
              AllOf(HasSubstr("'7'; choose from 7b, 70b"), HasSubstr("Did you mean `7b`?")));
  EXPECT_THAT(run_words({"zoo", "make", "mlp", "-o", "model.pt", "--preset", "7b"}).err,
              HasSubstr("'mlp' has no presets"));
}

TEST(ZooCommand, RejectsAnUnknownDtype) {
  const CliRun run = run_words({"zoo", "make", "mlp", "-o", "model.pt", "--dtype", "bfloat32"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("'bfloat32'; choose from float32, bfloat16, float16"));
}

TEST(ZooCommand, ChecksThatTheFileCanBeWrittenBeforeAnythingElse) {
  const CliRun run = run_words({"zoo", "make", "mlp", "-o", "/nonexistent/model.pt"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("/nonexistent"));
}

TEST(ZooCommand, SuggestsMoreMemoryForAModelTooLargeForTheDefaultGpu) {
  const auto flags = [](const char* preset, const char* dtype) {
    return virtual_device_flags("llama", zoo_preset_sizes(find_zoo_model("llama"), preset), dtype);
  };
  EXPECT_EQ(flags("7b", "bfloat16"), "--device virtual");
  EXPECT_EQ(flags("70b", "bfloat16"), "--device virtual --device-memory 2TiB");
  EXPECT_EQ(flags("70b", "float32"), "--device virtual --device-memory 2TiB");
}

TEST(ZooCommand, RequiresAnOutputFile) {
  EXPECT_THAT(run_words({"zoo", "make", "mlp"}).err, HasSubstr("--output is required"));
  EXPECT_THAT(run_words({"zoo", "make", "mlp", "-o", "-"}).err, HasSubstr("standard output"));
}

}  // namespace
}  // namespace offprof

#include "engine/models/zoo/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "engine/models/zoo/blueprint.h"
#include "engine/models/zoo/models.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return input_error("");
}

TEST(ZooCatalog, DescribesEveryModelAndSize) {
  for (const ZooModel& model : zoo_models()) {
    EXPECT_FALSE(model.what.empty()) << model.name;
    for (const ZooSize& size : model.sizes) EXPECT_FALSE(size.what.empty()) << model.name << " " << size.name;
  }
}

TEST(ZooCatalog, DefaultsAreInTheirRanges) {
  for (const ZooModel& model : zoo_models()) {
    for (const ZooSize& size : model.sizes) {
      EXPECT_LE(size.min, size.value) << model.name << " " << size.name;
      EXPECT_LE(size.value, size.max) << model.name << " " << size.name;
    }
  }
}

TEST(ZooCatalog, SizeNamesAreUnique) {
  for (const ZooModel& model : zoo_models()) {
    std::set<std::string> names;
    for (const ZooSize& size : model.sizes)
      EXPECT_TRUE(names.insert(size.name).second) << model.name << size.name;
  }
}

TEST(ZooCatalog, FindsAModelByItsName) {
  EXPECT_EQ(find_zoo_model("unet").name, "unet");
}

TEST(ZooCatalog, AnUnknownModelIsReportedWithTheNamesAndTheNearest) {
  const Error error = error_of([] { find_zoo_model("transfromer"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(),
              HasSubstr("'transfromer'; choose from transformer, llama, moe, lstm, mlp, resnet, unet"));
  EXPECT_EQ(error.hint(), "Did you mean `transformer`?");
}

TEST(ZooCatalog, GivesNoGuessForANameFarFromAll) {
  EXPECT_THAT(error_of([] { find_zoo_model("diffusion"); }).hint(), IsEmpty());
}

TEST(ZooCatalog, PresetsFitTheirModels) {
  for (const ZooModel& model : zoo_models()) {
    for (const ZooPreset& preset : model.presets)
      EXPECT_NO_THROW(draw_zoo_model(model.name, zoo_preset_sizes(model, preset.name))) << preset.name;
  }
}

std::int64_t parameters_of(const ModuleBlueprint& module) {
  std::int64_t count = 0;
  for (const TensorBlueprint& parameter : module.parameters) {
    std::int64_t elements = 1;
    for (const std::int64_t size : parameter.shape) elements *= size;
    count += elements;
  }
  for (const ModuleBlueprint& child : module.children) count += parameters_of(child);
  return count;
}

TEST(ZooCatalog, LlamaPresetsHaveThePublishedParameterCounts) {
  const ZooModel& llama = find_zoo_model("llama");
  EXPECT_EQ(parameters_of(draw_zoo_model("llama", zoo_preset_sizes(llama, "7b")).root), 6'738'415'616);
  EXPECT_EQ(parameters_of(draw_zoo_model("llama", zoo_preset_sizes(llama, "70b")).root), 68'976'648'192);
}

TEST(ZooCatalog, AnUnknownPresetIsReportedWithTheKnownOnes) {
  const Error error = error_of([] { zoo_preset_sizes(find_zoo_model("llama"), "13b"); });
  EXPECT_THAT(error.what(), HasSubstr("'13b'; choose from 7b, 70b"));
}

TEST(ZooCatalog, AnUnknownDtypeIsReportedWithTheNearest) {
  EXPECT_EQ(error_of([] { check_zoo_dtype("bfloat"); }).hint(), "Did you mean `bfloat16`?");
  for (const std::string& dtype : zoo_dtypes()) EXPECT_NO_THROW(check_zoo_dtype(dtype));
}

TEST(DrawZooModel, RefusesHeadsOfOddWidth) {
  EXPECT_EQ(error_of([] {
              draw_zoo_model("llama", {{"width", 12}, {"heads", 4}});
            }).hint(),
            "for example: width 16");
}

TEST(DrawZooModel, RefusesHeadsThatKvHeadsDoNotDivide) {
  EXPECT_STREQ(error_of([] {
                 draw_zoo_model("llama", {{"heads", 4}, {"kv-heads", 3}});
               }).what(),
               "size 'heads' (4) is not a multiple of 'kv-heads' (3)");
}

TEST(DrawZooModel, WritesTheSizesIntoTheInputSpecs) {
  EXPECT_THAT(draw_zoo_model("transformer", {{"batch", 3}, {"seq", 40}, {"vocab", 99}}).inputs,
              ElementsAre("int64[3,40]<99"));
  EXPECT_THAT(draw_zoo_model("unet", {{"batch", 2}, {"image", 96}}).inputs,
              ElementsAre("float32[2,3,96,96]"));
}

TEST(DrawZooModel, AcceptsTheDefaultsOfEveryModel) {
  for (const ZooModel& model : zoo_models()) EXPECT_NO_THROW(draw_zoo_model(model.name, {})) << model.name;
}

TEST(DrawZooModel, RefusesAnUnknownSize) {
  const Error error = error_of([] { draw_zoo_model("mlp", {{"bach", 4}}); });
  EXPECT_THAT(error.what(), HasSubstr("'bach'; choose from batch, inputs, layers, width, classes"));
  EXPECT_EQ(error.hint(), "Did you mean `batch`?");
}

TEST(DrawZooModel, RefusesASizeOutOfItsRange) {
  const Error error = error_of([] { draw_zoo_model("transformer", {{"dropout", 95}}); });
  EXPECT_STREQ(error.what(), "size 'dropout' of the zoo model 'transformer' is 95; it must be from 0 to 90");
  EXPECT_THAT(error_of([] {
                draw_zoo_model("mlp", {{"batch", 0}});
              }).what(),
              HasSubstr("is 0; it must be from 1"));
}

TEST(DrawZooModel, RefusesAWidthThatTheHeadsDoNotDivide) {
  const Error error = error_of([] { draw_zoo_model("moe", {{"width", 100}, {"heads", 3}}); });
  EXPECT_STREQ(error.what(), "size 'width' (100) is not a multiple of 'heads' (3)");
  EXPECT_EQ(error.hint(), "for example: width 99");
}

TEST(DrawZooModel, RefusesMoreChoicesThanExperts) {
  EXPECT_THAT(error_of([] {
                draw_zoo_model("moe", {{"experts", 2}, {"choices", 3}});
              }).what(),
              HasSubstr("'choices' (3) is more than 'experts' (2)"));
}

TEST(DrawZooModel, RefusesExpertsThatWouldGetNoToken) {
  EXPECT_THAT(error_of([] {
                draw_zoo_model("moe", {{"batch", 1}, {"seq", 2}, {"experts", 8}});
              }).what(),
              HasSubstr("an expert would choose no token"));
}

TEST(DrawZooModel, RefusesAnImageThatCannotBeHalvedOften) {
  const Error error = error_of([] { draw_zoo_model("unet", {{"image", 60}}); });
  EXPECT_THAT(error.what(), HasSubstr("it must be a multiple of 8"));
  EXPECT_EQ(error.hint(), "for example: image 64");
}

TEST(DrawZooModel, RefusesOneValueAChannelUnderBatchNorm) {
  EXPECT_THAT(error_of([] {
                draw_zoo_model("unet", {{"batch", 1}, {"image", 8}});
              }).what(),
              HasSubstr("one pixel"));
  EXPECT_THAT(error_of([] {
                draw_zoo_model("resnet", {{"batch", 1}, {"image", 4}});
              }).what(),
              HasSubstr("one pixel"));
  EXPECT_NO_THROW(draw_zoo_model("resnet", {{"batch", 1}, {"image", 5}}));
}

}  // namespace
}  // namespace offprof

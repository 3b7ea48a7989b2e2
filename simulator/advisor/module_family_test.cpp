#include "simulator/advisor/module_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/layered_trace.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<ModuleFamily> families_of(const std::vector<LayerSave>& saves) {
  return module_families(layered_trace(saves).program);
}

TEST(ModuleFamilies, ArePathsThatDifferInNumbersAlone) {
  const auto families = families_of({{"layers.0.mlp", 100},
                                     {"layers.0.norm", 20},
                                     {"layers.1.mlp", 100},
                                     {"layers.1.norm", 20},
                                     {"head", 500}});
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].pattern, "layers.*");
  EXPECT_THAT(families[0].paths, ElementsAre("layers.0", "layers.1"));
  EXPECT_EQ(families[0].saved_bytes, 240);
}

TEST(ModuleFamilies, HaveNumbersWithinNamesToo) {
  const auto families =
      families_of({{"blocks.layer0", 1}, {"blocks.layer0", 2}, {"blocks.layer12", 3}, {"blocks.layer12", 4}});
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].pattern, "blocks.layer*");
}

TEST(ModuleFamilies, HaveSeveralModules) {
  EXPECT_THAT(families_of({{"layers.0.a", 100}, {"layers.0.b", 20}}), IsEmpty());
}

TEST(ModuleFamilies, SaveSeveralTensorsPerModule) {
  EXPECT_THAT(families_of({{"layers.0", 100}, {"layers.1", 100}}), IsEmpty());
}

TEST(ModuleFamilies, HaveInnerOnesThatSaveLess) {
  const auto families = families_of({{"layers.0.mlp", 100},
                                     {"layers.0.mlp", 100},
                                     {"layers.0.norm", 20},
                                     {"layers.1.mlp", 100},
                                     {"layers.1.mlp", 100},
                                     {"layers.1.norm", 20}});
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[0].pattern, "layers.*");
  EXPECT_EQ(families[1].pattern, "layers.*.mlp");
  EXPECT_EQ(families[1].saved_bytes, 400);
}

TEST(ModuleFamilies, LeaveOutInnerOnesThatSaveTheSame) {
  const auto families =
      families_of({{"layers.0.mlp", 1}, {"layers.0.mlp", 2}, {"layers.1.mlp", 3}, {"layers.1.mlp", 4}});
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].pattern, "layers.*");
}

TEST(ModuleFamilies, HaveInnerOnesOfMoreModulesThatSaveTheSame) {
  std::vector<LayerSave> saves;
  for (const std::string path : {"layer1.0", "layer1.1", "layer2.0", "layer2.1"})
    for (int i = 0; i < 2; ++i) saves.push_back({path, path.starts_with("layer1") ? 400 : 100});
  const auto families = families_of(saves);
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[0].pattern, "layer*");
  EXPECT_EQ(families[1].pattern, "layer*.*");
}

TEST(ModuleFamilies, OfDifferentSizesAreCheckpointedTheLargestFirst) {
  std::vector<LayerSave> saves;
  for (const auto& [path, bytes] :
       {std::pair("0", 100), std::pair("1", 400), std::pair("2", 200), std::pair("3", 400)})
    for (int i = 0; i < 2; ++i) saves.push_back({path, bytes});
  const auto families = families_of(saves);
  ASSERT_EQ(families.size(), 1U);
  EXPECT_THAT(checkpointed_paths(families[0], 2), ElementsAre("1", "3"));
  EXPECT_THAT(checkpointed_paths(families[0], 3), ElementsAre("1", "2", "3"));
  EXPECT_THAT(checkpointed_paths(families[0], 2, Chosen::kFirst), ElementsAre("0", "1"));
  EXPECT_EQ(checkpoint_name(families[0], 2), "checkpoint the largest 2 of 4 modules");
}

TEST(ModuleFamilies, LeaveOutModulesThatSaveLittle) {
  std::vector<LayerSave> saves = {{"0", 7}};
  for (const std::string path : {"1", "2"})
    for (int i = 0; i < 5; ++i) saves.push_back({path, 100});
  saves.push_back({"3", 9});
  const auto families = families_of(saves);
  ASSERT_EQ(families.size(), 1U);
  EXPECT_THAT(families[0].paths, ElementsAre("1", "2"));
  EXPECT_EQ(families[0].saved_bytes, 1000);
  EXPECT_THAT(checkpointed_paths(families[0], 2), ElementsAre("1", "2")) << "* would match the others too";
}

TEST(ModuleFamilies, AreCheckpointedEvenlySpread) {
  const ModuleFamily family{.pattern = "*", .paths = {"0", "1", "2", "3", "4", "5", "6", "7"}};
  EXPECT_THAT(checkpointed_paths(family, 0), IsEmpty());
  EXPECT_THAT(checkpointed_paths(family, 3), ElementsAre("0", "2", "5"));
  EXPECT_THAT(checkpointed_paths(family, 4), ElementsAre("0", "2", "4", "6"));
  EXPECT_THAT(checkpointed_paths(family, 8), ElementsAre("*"));
  EXPECT_THAT(checkpointed_paths(family, 3, Chosen::kShifted), ElementsAre("1", "4", "6"));
  EXPECT_THAT(checkpointed_paths(family, 3, Chosen::kFirst), ElementsAre("0", "1", "2"));
}

}  // namespace
}  // namespace offprof

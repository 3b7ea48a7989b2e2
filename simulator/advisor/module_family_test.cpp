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

TEST(ModuleFamilies, AreEvenlySpread) {
  const std::vector<std::string> paths = {"0", "1", "2", "3", "4", "5", "6", "7"};
  EXPECT_THAT(evenly_spread(paths, 0), IsEmpty());
  EXPECT_THAT(evenly_spread(paths, 3), ElementsAre("0", "2", "5"));
  EXPECT_THAT(evenly_spread(paths, 4), ElementsAre("0", "2", "4", "6"));
  EXPECT_EQ(evenly_spread(paths, 8), paths);
}

}  // namespace
}  // namespace offprof

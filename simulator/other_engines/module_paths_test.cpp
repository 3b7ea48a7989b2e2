#include "simulator/other_engines/module_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ModulePaths, APathContainsItselfAndThePathsBelowIt) {
  EXPECT_TRUE(is_within("layers.1", "layers.1"));
  EXPECT_TRUE(is_within("layers.1.mlp", "layers.1"));
  EXPECT_FALSE(is_within("layers.10", "layers.1"));
  EXPECT_FALSE(is_within("layers", "layers.1"));
}

TEST(ModulePaths, ABlockEndsAtTheFirstNumber) {
  EXPECT_EQ(block_of("model.layers.3.mlp.act"), "model.layers.3");
  EXPECT_EQ(block_of("model.layers.13"), "model.layers.13");
  EXPECT_EQ(block_of("blocks.layer3.feed_forward.up2"), "blocks.layer3");
  EXPECT_EQ(block_of("layer4.0.conv1"), "layer4.0");
  EXPECT_EQ(block_of("encoder.norm"), "encoder");
  EXPECT_EQ(block_of("lm_head"), "lm_head");
}

TEST(ModulePaths, JoinsModulesOfOneParent) {
  EXPECT_THAT(covering_paths({"layers.1.mlp.up", "layers.1.mlp.down"}, {"layers.1.attn"}),
              ElementsAre("layers.1.mlp"));
}

TEST(ModulePaths, StopsBelowAParentThatContainsAnUnwantedModule) {
  EXPECT_THAT(covering_paths({"layers.1.mlp", "lm_head"}, {"layers.1.attn", "layers.0.mlp"}),
              ElementsAre("layers.1.mlp", "lm_head"));
}

TEST(ModulePaths, ReturnsNoContainer) {
  EXPECT_THAT(covering_paths({"model.layers.0.mlp", "model.layers.1.mlp"}, {"model.norm"}),
              ElementsAre("model.layers.0", "model.layers.1"));
}

TEST(ModulePaths, LeavesOutAModuleThatContainsAnUnwantedOne) {
  EXPECT_THAT(covering_paths({"attn"}, {"attn.q"}), IsEmpty());
}

TEST(ModulePaths, NeverReturnsTheModelItself) {
  EXPECT_THAT(covering_paths({""}, {}), IsEmpty());
}

}  // namespace
}  // namespace offprof

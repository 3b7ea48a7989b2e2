#include "engine/devices/virtual_gpu/work/op_family.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(OpFamily, AnOperatorBelongsToAFamily) {
  EXPECT_EQ(family_of("aten::addmm"), "products");
  EXPECT_EQ(family_of("aten::_scaled_dot_product_flash_attention_backward"), "attention");
  EXPECT_EQ(family_of("aten::native_layer_norm_backward"), "row_operators");
  EXPECT_EQ(family_of("aten::silu_backward"), "elementwise");
}

TEST(OpFamily, AnOperatorInPlaceBelongsToTheFamilyOfItsName) {
  EXPECT_EQ(family_of("aten::mul_"), "elementwise");
  EXPECT_EQ(family_of("aten::copy_"), "elementwise");
}

TEST(OpFamily, OptimizersAreElementwise) {
  EXPECT_EQ(family_of("aten::_foreach_addcdiv_"), "elementwise");
  EXPECT_EQ(family_of("aten::_fused_adamw_"), "elementwise");
}

TEST(OpFamily, OperationsBetweenRanksAreCollectives) {
  EXPECT_EQ(family_of("c10d::allreduce_"), "collectives");
}

TEST(OpFamily, OperatorsThatNobodyLookedAtAreOther) {
  for (const char* name : {"aten::convolution_backward", "aten::embedding_dense_backward", "aten::sort",
                           "AddmmBackward0", "mul", "triton_poi_fused_0", ""})
    EXPECT_EQ(family_of(name), "other") << name;
}

}  // namespace
}  // namespace offprof

#include "engine/devices/virtual_gpu/model/time_ranges.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(TimeRanges, AnOperatorBelongsToAFamily) {
  EXPECT_EQ(family_of("aten::addmm"), "products");
  EXPECT_EQ(family_of("aten::_scaled_dot_product_flash_attention_backward"), "attention");
  EXPECT_EQ(family_of("aten::native_layer_norm_backward"), "row_operators");
  EXPECT_EQ(family_of("aten::silu_backward"), "elementwise");
}

TEST(TimeRanges, AnOperatorInPlaceBelongsToTheFamilyOfItsName) {
  EXPECT_EQ(family_of("aten::mul_"), "elementwise");
  EXPECT_EQ(family_of("aten::copy_"), "elementwise");
}

TEST(TimeRanges, OptimizersAreElementwise) {
  EXPECT_EQ(family_of("aten::_foreach_addcdiv_"), "elementwise");
  EXPECT_EQ(family_of("aten::_fused_adamw_"), "elementwise");
}

TEST(TimeRanges, OperatorsThatNobodyLookedAtAreOther) {
  for (const char* name : {"aten::convolution_backward", "aten::embedding_dense_backward", "aten::sort",
                           "AddmmBackward0", "mul", "triton_poi_fused_0", ""})
    EXPECT_EQ(family_of(name), "other") << name;
}

/// A family that was never compared is less certain than any that was.
TEST(TimeRanges, OtherKernelsAreTheLeastCertain) {
  const TimeFactors other = kernel_factors("other");
  for (const char* family : {"products", "row_operators", "elementwise", "attention"}) {
    const TimeFactors factors = kernel_factors(family);
    EXPECT_LT(factors.low, 1) << family;
    EXPECT_GT(factors.high, 1) << family;
    EXPECT_LT(other.low, factors.low) << family;
    EXPECT_GT(other.high, factors.high) << family;
  }
  EXPECT_EQ(kernel_factors("a family of a later version"), other);
}

}  // namespace
}  // namespace offprof

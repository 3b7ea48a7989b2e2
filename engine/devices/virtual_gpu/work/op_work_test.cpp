#include "engine/devices/virtual_gpu/work/op_work.h"

#include <gtest/gtest.h>

#include <utility>

namespace offprof {
namespace {

Bytes element_bytes(std::string_view dtype) {
  return dtype == "int64" ? 8 : dtype == "float32" ? 4 : 2;
}

OperandShape tensor(std::string_view dtype, std::vector<std::int64_t> sizes) {
  Bytes bytes = element_bytes(dtype);
  for (const std::int64_t size : sizes) bytes *= size;
  return {dtype, std::move(sizes), bytes, element_bytes(dtype)};
}

TEST(OpWork, AProductTakesTwoOperationsPerMultiplyAdd) {
  const OpCall mm{"aten::mm", {tensor("bfloat16", {3, 5}), tensor("bfloat16", {5, 7})}};
  const OpWork work = work_of(mm, 3 * 7 * 2);
  EXPECT_EQ(work.flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(work.bytes, 2 * (3 * 5 + 5 * 7 + 3 * 7));
  EXPECT_EQ(work.dtype, "bfloat16");
  EXPECT_TRUE(work.tensor_cores);
}

TEST(OpWork, AddmmMultipliesItsSecondAndThirdOperand) {
  const OpCall op{"aten::addmm",
                  {tensor("float32", {7}), tensor("float32", {3, 5}), tensor("float32", {5, 7})}};
  EXPECT_EQ(work_of(op, 0).flops, 2 * 3 * 5 * 7);
}

TEST(OpWork, ABatchedProductCountsEachProduct) {
  const OpCall bmm{"aten::bmm", {tensor("float32", {4, 3, 5}), tensor("float32", {4, 5, 7})}};
  EXPECT_EQ(work_of(bmm, 0).flops, 4 * 2 * 3 * 5 * 7);
  const OpCall baddbmm{
      "aten::baddbmm",
      {tensor("float32", {4, 3, 7}), tensor("float32", {4, 3, 5}), tensor("float32", {4, 5, 7})}};
  EXPECT_EQ(work_of(baddbmm, 0).flops, 4 * 2 * 3 * 5 * 7);
}

TEST(OpWork, AProductIsAlignedAsItsLeastAlignedMatrix) {
  const auto aligned = [](std::vector<std::int64_t> a, std::vector<std::int64_t> b) {
    const OpCall op{"aten::mm", {tensor("bfloat16", std::move(a)), tensor("bfloat16", std::move(b))}};
    return work_of(op, 0).product->aligned_elements;
  };
  EXPECT_EQ(aligned({3, 16}, {16, 24}), 8);
  EXPECT_EQ(aligned({3, 12}, {12, 24}), 4);  // rows of the first
  EXPECT_EQ(aligned({3, 16}, {16, 10}), 2);  // rows of the second, and of the result
  EXPECT_EQ(aligned({3, 16}, {16, 1}), 8);   // one column has no rows
  OperandShape transposed = tensor("bfloat16", {12, 16});
  transposed.step_bytes = 12 * 2;
  const OpCall op{"aten::mm", {transposed, tensor("bfloat16", {16, 8})}};
  EXPECT_EQ(work_of(op, 0).product->aligned_elements, 4);  // its columns have 12 elements
}

TEST(OpWork, LinearTransposesItsWeight) {
  const OpCall op{"aten::linear",
                  {tensor("float16", {2, 3, 5}), tensor("float16", {7, 5}), tensor("float16", {7})}};
  EXPECT_EQ(work_of(op, 0).flops, 2 * 2 * 3 * 5 * 7);
}

TEST(OpWork, Float32IsTf32IfTheProgramAllowsIt) {
  OpCall product{"aten::mm", {tensor("float32", {3, 5}), tensor("float32", {5, 7})}};
  EXPECT_EQ(work_of(product, 0).dtype, "float32");
  product.uses_tf32 = true;
  EXPECT_EQ(work_of(product, 0).dtype, "tf32");
  OpCall convolution{"aten::cudnn_convolution",
                     {tensor("float16", {1, 2, 8, 8}), tensor("float16", {4, 2, 3, 3})}};
  convolution.uses_tf32 = true;
  EXPECT_EQ(work_of(convolution, 0).dtype, "float16");
}

TEST(OpWork, AConvolutionUsesAFilterPerOutputElement) {
  const OpCall op{"aten::cudnn_convolution",
                  {tensor("float32", {2, 6, 16, 16}), tensor("float32", {8, 6, 3, 3})}};
  const double outputs = 2 * 8 * 8 * 8;  // stride 2
  EXPECT_EQ(work_of(op, static_cast<Bytes>(outputs) * 4).flops, 2 * outputs * 6 * 3 * 3);
}

TEST(OpWork, AConvolutionWithoutAllocationKeepsHeightAndWidth) {
  const OpCall op{"aten::cudnn_convolution",
                  {tensor("float32", {2, 6, 16, 16}), tensor("float32", {8, 6, 3, 3})}};
  EXPECT_EQ(work_of(op, 0).flops, 2.0 * (2 * 8 * 16 * 16) * 6 * 3 * 3);
}

TEST(OpWork, ConvolutionGroupsReduceTheFilter) {
  const OpCall op{"aten::cudnn_convolution",
                  {tensor("float32", {2, 6, 16, 16}), tensor("float32", {6, 1, 3, 3})}};
  EXPECT_EQ(work_of(op, 2 * 6 * 16 * 16 * 4).flops, 2.0 * (2 * 6 * 16 * 16) * 3 * 3);
}

TEST(OpWork, ATransposedConvolutionUsesAFilterPerInputElement) {
  const OpCall op{"aten::cudnn_convolution_transpose",
                  {tensor("float32", {2, 6, 8, 8}), tensor("float32", {6, 3, 2, 2})}};
  EXPECT_EQ(work_of(op, 2 * 3 * 16 * 16 * 4).flops, 2.0 * (2 * 6 * 8 * 8) * 3 * 2 * 2);
}

TEST(OpWork, ConvolutionBackwardIsTwiceTheForward) {
  const OpCall op{
      "aten::convolution_backward",
      {tensor("float32", {2, 8, 8, 8}), tensor("float32", {2, 6, 16, 16}), tensor("float32", {8, 6, 3, 3})}};
  EXPECT_EQ(work_of(op, 0).flops, 2 * (2.0 * (2 * 8 * 8 * 8) * 6 * 3 * 3));
}

TEST(OpWork, ConvolutionBackwardDetectsATransposedConvolution) {
  const OpCall op{
      "aten::convolution_backward",
      {tensor("float32", {2, 3, 16, 16}), tensor("float32", {2, 6, 8, 8}), tensor("float32", {6, 3, 2, 2})}};
  EXPECT_EQ(work_of(op, 0).flops, 2 * (2.0 * (2 * 6 * 8 * 8) * 3 * 2 * 2));
}

TEST(OpWork, AttentionIsTwoProductsOverAllPositions) {
  const OperandShape query = tensor("bfloat16", {2, 4, 10, 16});  // batch, heads, positions, width
  const OperandShape key = tensor("bfloat16", {2, 4, 12, 16});
  const OpCall op{"aten::_scaled_dot_product_efficient_attention", {query, key, key}};
  EXPECT_EQ(work_of(op, 0).flops, 2 * (2.0 * 2 * 4 * 10 * 12 * 16));
}

TEST(OpWork, FlashAttentionHasPositionsBeforeHeads) {
  const OperandShape query = tensor("bfloat16", {2, 10, 4, 16});
  const OperandShape key = tensor("bfloat16", {2, 12, 4, 16});
  EXPECT_EQ(work_of({"aten::_flash_attention_forward", {query, key, key}}, 0).flops,
            2 * (2.0 * 2 * 4 * 10 * 12 * 16));
}

TEST(OpWork, AttentionBackwardIsFiveProducts) {
  const OperandShape query = tensor("bfloat16", {2, 10, 4, 16});
  const OperandShape key = tensor("bfloat16", {2, 12, 4, 16});
  const OpCall op{"aten::_flash_attention_backward", {query, query, key, key, query}};
  EXPECT_EQ(work_of(op, 0).flops, 5 * (2.0 * 2 * 4 * 10 * 12 * 16));
}

TEST(OpWork, FewerKeyHeadsDoNotReduceTheProducts) {
  const OperandShape query = tensor("bfloat16", {2, 10, 8, 16});
  const OperandShape key = tensor("bfloat16", {2, 10, 2, 16});
  EXPECT_EQ(work_of({"aten::_flash_attention_forward", {query, key, key}}, 0).flops,
            2 * (2.0 * 2 * 8 * 10 * 10 * 16));
}

TEST(OpWork, OtherOperatorsMoveTheirOperandsAndAllocations) {
  const OpWork work = work_of({"aten::gelu", {tensor("float32", {10, 10})}}, 400);
  EXPECT_EQ(work.bytes, 800);
  EXPECT_EQ(work.flops, 0);
  EXPECT_FALSE(work.tensor_cores);
}

TEST(OpWork, AnInPlaceOperatorWritesItsFirstOperand) {
  EXPECT_EQ(work_of({"aten::add_", {tensor("float32", {10}), tensor("float32", {10})}}, 0).bytes, 3 * 40);
}

TEST(OpWork, AnOverwritingOperatorDoesNotRead) {
  EXPECT_EQ(work_of({"aten::copy_", {tensor("float32", {10}), tensor("bfloat16", {10})}}, 0).bytes, 40 + 20);
  EXPECT_EQ(work_of({"aten::zero_", {tensor("float32", {10})}}, 0).bytes, 40);
}

TEST(OpWork, AnEmbeddingReadsTheRowsItReturns) {
  const OpCall op{"aten::embedding", {tensor("float32", {1000, 8}), tensor("int64", {5})}};
  EXPECT_EQ(work_of(op, 5 * 8 * 4).bytes, 5 * 8 + 2 * (5 * 8 * 4));
}

TEST(OpWork, AnOperatorOnListsWritesTheFirstList) {
  const OperandShape a = tensor("float32", {10}), b = tensor("float32", {20});
  EXPECT_EQ(work_of({"aten::_foreach_add_", {a, b, a, b}, 2}, 0).bytes, 240 + 120);
  EXPECT_EQ(work_of({"aten::_foreach_addcdiv_", {a, b, a, b, a, b}, 2}, 0).bytes, 360 + 120);
  EXPECT_EQ(work_of({"aten::_foreach_sqrt_", {a, b}, 2}, 0).bytes, 120 + 120);
}

// One list of four tensors is not two lists of two.
TEST(OpWork, AnOperatorOnOneListOfAlikeTensorsWritesAllOfThem) {
  const OperandShape a = tensor("float32", {10});
  EXPECT_EQ(work_of({"aten::_foreach_mul_", {a, a, a, a}, 4}, 0).bytes, 160 + 160);
}

TEST(OpWork, AFusedOptimizerWritesAllButTheGradients) {
  const OperandShape a = tensor("float32", {10}), b = tensor("float32", {20}), steps = tensor("float32", {});
  EXPECT_EQ(work_of({"aten::_fused_adamw_", {a, b, a, b, a, b, a, b, steps, steps}, 2}, 0).bytes,
            2 * (4 * 120 + 8) - 120);
}

TEST(OpWork, CudnnsAttentionCountsLikeFlashAttention) {
  const OperandShape query = tensor("bfloat16", {2, 4, 10, 16});
  const OpWork forward = work_of({"aten::_cudnn_attention_forward", {query, query, query}}, 0);
  EXPECT_EQ(forward.flops, 2 * (2.0 * 2 * 4 * 10 * 10 * 16));
  EXPECT_TRUE(forward.attention->is_cudnn);
  EXPECT_EQ(work_of({"aten::_cudnn_attention_backward", {query, query, query, query}}, 0).flops,
            5 * (2.0 * 2 * 4 * 10 * 10 * 16));
}

OpCall convolution_of(std::vector<std::int64_t> image, std::vector<std::int64_t> filters) {
  return {"aten::cudnn_convolution",
          {tensor("bfloat16", std::move(image)), tensor("bfloat16", std::move(filters))}};
}

TEST(OpWork, AConvolutionReordersImagesWhoseChannelsDoNotComeLast) {
  constexpr Bytes kIn = 2 * 6 * 16 * 16, kOut = 2 * 8 * 16 * 16;
  OpCall op = convolution_of({2, 6, 16, 16}, {8, 6, 3, 3});
  const auto shape = work_of(op, 2 * kOut).convolution.value();
  EXPECT_EQ(shape.reordered_bytes, 2 * (2 * kIn + 2 * kOut));
  EXPECT_EQ(shape.reordered_elements,
            2 * 16 * 16 * 22 + kOut);  // a pixel of few channels takes as long as of 22
  EXPECT_EQ(shape.product.rows, 2 * 16 * 16);
  EXPECT_EQ(shape.product.inner, 6 * 3 * 3);
  op.operands[0].step_bytes = 6 * 2;
  EXPECT_EQ(work_of(op, 2 * kOut).convolution->reordered_bytes, 0);
}

TEST(OpWork, AConvolutionOfSinglePixelsReordersNothing) {
  EXPECT_EQ(work_of(convolution_of({2, 6, 16, 16}, {8, 6, 1, 1}), 0).convolution->reordered_bytes, 0);
}

TEST(OpWork, AConvolutionOfSinglePixelsReordersImagesThatAreNoAlignedMatrices) {
  EXPECT_GT(work_of(convolution_of({2, 6, 7, 7}, {8, 6, 1, 1}), 0).convolution->reordered_bytes, 0);
  constexpr Bytes kOutOfEverySecond = 2 * 8 * 8 * 8 * 2;
  EXPECT_GT(
      work_of(convolution_of({2, 6, 16, 16}, {8, 6, 1, 1}), kOutOfEverySecond).convolution->reordered_bytes,
      0);
}

TEST(OpWork, AConvolutionInGroupsIsComputedInBlocksOfChannels) {
  const auto shape = work_of(convolution_of({2, 128, 16, 16}, {256, 4, 3, 3}), 0).convolution.value();
  EXPECT_EQ(shape.computed_operations, 64 / 4);
  EXPECT_EQ(shape.product.rows, 2 * 16 * 16 * 2);  // two blocks
  EXPECT_EQ(shape.product.columns, 128);
  EXPECT_EQ(shape.product.inner, 64 * 9);
}

TEST(OpWork, AConvolutionOfOperandsThatDoNotFitHasNoShape) {
  EXPECT_FALSE(work_of(convolution_of({2, 3, 16, 16}, {8, 6, 1, 1}), 0).convolution.has_value());
  EXPECT_FALSE(work_of(convolution_of({0, 6, 16, 16}, {8, 6, 1, 1}), 0).convolution.has_value());
}

TEST(OpWork, AConvolutionOfSingleChannelsIsNoProduct) {
  EXPECT_FALSE(work_of(convolution_of({2, 6, 16, 16}, {6, 1, 3, 3}), 0).convolution.has_value());
}

TEST(OpWork, FiltersOfOnePixelSkipPixelsWhoseChannelsComeLast) {
  OpCall op = convolution_of({2, 64, 16, 16}, {64, 64, 1, 1});
  op.operands[0].step_bytes = 64 * 2;
  constexpr Bytes kImages = 2 * 64 * 16 * 16 * 2, kOutOfEverySecond = kImages / 4;
  EXPECT_EQ(work_of(op, kImages).bytes - work_of(op, kOutOfEverySecond).bytes, kImages / 4 * 3 * 2);
}

TEST(OpWork, TheGradientOfAWeightSumsElementsThatAreApart) {
  const OperandShape rows = tensor("float32", {256, 64});
  const OperandShape transposed{"float32", {64, 256}, 64 * 256 * 4, 4, 64 * 4};
  EXPECT_TRUE(work_of({"aten::mm", {transposed, rows}}, 0).product->sums_apart);
  EXPECT_FALSE(work_of({"aten::mm", {rows, tensor("float32", {64, 8})}}, 0).product->sums_apart);
}

TEST(OpWork, TheFirstConvolutionHasNoGradientOfItsInput) {
  OpCall op{
      "aten::convolution_backward",
      {tensor("float32", {2, 8, 8, 8}), tensor("float32", {2, 6, 16, 16}), tensor("float32", {8, 6, 3, 3})}};
  const OpWork both = work_of(op, 0);
  op.gradients = 1;
  EXPECT_EQ(work_of(op, 0).flops, both.flops / 2);
  EXPECT_EQ(work_of(op, 0).bytes, both.bytes - op.operands[0].bytes);
  EXPECT_EQ(both.convolution->gradients, 2);
  EXPECT_EQ(work_of(op, 0).convolution->gradients, 1);
}

TEST(OpWork, AnOperatorWithUnexpectedOperandsCountsOnlyTraffic) {
  EXPECT_EQ(work_of({"aten::mm", {tensor("float32", {10})}}, 40).bytes, 80);
  EXPECT_EQ(work_of({"aten::convolution_backward", {}}, 40).flops, 0);
  EXPECT_EQ(work_of({"aten::_flash_attention_forward", {tensor("float32", {4, 4, 4})}}, 0).flops, 0);
}

}  // namespace
}  // namespace offprof

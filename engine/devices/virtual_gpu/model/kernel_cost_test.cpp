#include "engine/devices/virtual_gpu/model/kernel_cost.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

const KernelLaunch kGemm{.name = "cublasGemmEx"};

OperandShape square(std::string_view dtype, std::int64_t size, Bytes element_bytes) {
  return {dtype, {size, size}, size * size * element_bytes, element_bytes};
}

OpCall product(std::string_view dtype, std::int64_t size, Bytes element_bytes) {
  return {"aten::mm", {square(dtype, size, element_bytes), square(dtype, size, element_bytes)}};
}

DeviceProfile round_profile() {
  DeviceProfile profile;
  profile.flops_per_second = {
      {"float64", 1e12}, {"float32", 1e12}, {"tf32", 4e12}, {"float16", 10e12}, {"bfloat16", 10e12}};
  profile.memory_bytes_per_second = 1e12;
  profile.l2_cache_bytes = 1 << 20;
  profile.multiprocessors = 1;
  profile.kernel_ns = 1000;
  return profile;
}

TEST(KernelCost, ALargeProductIsBoundByCompute) {
  const KernelCost cost(load_profile("h200"), {});
  const OpCall op = product("bfloat16", 4096, 2);
  // 2 * 4096^3 operations at 0.77 * 989.4 TFLOP/s, and 1/64 of the traffic. 512 tiles of 128 x 256 take as
  // long as four waves of 132.
  EXPECT_EQ(cost.time_of(kGemm, &op, 4096 * 4096 * 2, true).duration, 188400);
}

/// An H100 took 130 us for the result of 128 x 50257, which GPT-2 has, by a kernel of cuBLAS for rows that
/// are not aligned (PyTorch's profiler, PyTorch 2.11).
TEST(KernelCost, RowsThatAreNotAlignedAreLoadedByElements) {
  const KernelCost cost(load_profile("h100-80gb"), {});
  const auto time_of = [&](std::int64_t columns, std::string_view dtype) {
    const OperandShape x{dtype, {128, 768}, 128 * 768 * 2, 2};
    OperandShape weight{dtype, {768, columns}, 768 * columns * 2, 2, 768 * 2};  // transposed
    const OpCall op{"aten::mm", {x, weight}};
    return cost.time_of(kGemm, &op, 128 * columns * 2, true).duration;
  };
  EXPECT_NEAR(static_cast<double>(time_of(50257, "bfloat16")), 130e3, 0.2 * 130e3);
  EXPECT_LT(time_of(50304, "bfloat16"), 50e3);
  EXPECT_GT(time_of(50258, "bfloat16"), time_of(50260, "bfloat16"));  // 2 elements, 4 elements
}

TEST(KernelCost, Float32ProductsRunWithoutTensorCores) {
  const KernelCost cost(load_profile("h200"), {});
  const OpCall op = product("float32", 4096, 4);
  // At 0.77 * 66.9 TFLOP/s, in the same tiles.
  EXPECT_EQ(cost.time_of(kGemm, &op, 4096 * 4096 * 4, true).duration, 2754137);
}

TEST(KernelCost, AClockUnderLoadSlowsWhatIsBoundByArithmetic) {
  DeviceProfile limited = load_profile("h200");
  limited.sustained_clock = 0.8;
  const KernelCost cost(load_profile("h200"), {}), limited_cost(limited, {});
  const OpCall multiply = product("bfloat16", 4096, 2), add{"aten::add", {square("bfloat16", 4096, 2)}};
  const auto time_of = [](const KernelCost& of, const OpCall& op) {
    return static_cast<double>(of.time_of(kGemm, &op, 4096 * 4096 * 2, true).duration);
  };
  const double traffic_ns = 188400 - 2 * 4096.0 * 4096 * 4096 / (0.77 * 989.4e3);  // not hidden, or of a tile
  EXPECT_NEAR(time_of(limited_cost, multiply), time_of(cost, multiply) / 0.8, traffic_ns / 4);
  EXPECT_GT(time_of(limited_cost, multiply), 1.2 * time_of(cost, multiply));
  EXPECT_EQ(time_of(limited_cost, add), time_of(cost, add));
}

TEST(KernelCost, AnElementwiseOperatorIsBoundByBandwidth) {
  const KernelCost cost(load_profile("h200"), {});
  const OpCall op{"aten::gelu", {{"bfloat16", {1 << 30}, Bytes{2} << 30}}};
  // 4 GiB at 0.915 * 4.8 TB/s, and 2 us.
  EXPECT_EQ(cost.time_of({}, &op, Bytes{2} << 30, true).duration, 979907);
}

TEST(KernelCost, NoKernelIsShorterThanTheShortest) {
  const KernelCost cost(round_profile(), {});
  const OpCall op{"aten::add", {{"float32", {4}, 16}}};
  EXPECT_NEAR(static_cast<double>(cost.time_of({}, &op, 16, true).duration), 1000, 1);
}

TEST(KernelCost, AllWorkIsChargedToTheFirstKernel) {
  const KernelCost cost(round_profile(), {});
  const OpCall op{"aten::add", {{"float32", {1 << 20}, 4 << 20}}};
  EXPECT_EQ(cost.time_of({}, &op, 4 << 20, true).duration, 9389);
  EXPECT_EQ(cost.time_of({}, &op, 4 << 20, false).duration, 1000);
}

TEST(KernelCost, AKernelOutsideAnyOperatorTakesTheShortestTime) {
  EXPECT_EQ(KernelCost(round_profile(), {}).time_of({}, nullptr, 0, true).duration, 1000);
}

TEST(KernelCost, AKernelWithKnownArgumentsMovesTheirMemoryOnce) {
  const KernelCost cost(round_profile(), {});
  const KernelLaunch launch{.name = "triton_add", .argument_bytes = 12 << 20};
  EXPECT_EQ(cost.time_of(launch, nullptr, 0, true).duration, 13583);
  const OpCall op{"aten::add", {{"float32", {1 << 20}, 4 << 20}}};
  EXPECT_EQ(cost.time_of(launch, &op, 4 << 20, false).duration, 13583);
}

TEST(KernelCost, AKernelWithSmallArgumentsTakesTheShortestTime) {
  const KernelLaunch launch{.name = "triton_add", .argument_bytes = 0};
  EXPECT_EQ(KernelCost(round_profile(), {}).time_of(launch, nullptr, 0, true).duration, 1000);
}

// Times of cuDNN's and cuBLAS's kernels on an H100 (traces/recorded/h100/kernels.csv), in microseconds.
double time_on_h100(const OpCall& op, Bytes allocated) {
  return static_cast<double>(
             KernelCost(load_profile("h100-80gb"), {}).time_of({}, &op, allocated, true).duration) /
         1e3;
}

OperandShape images(std::string_view dtype, std::vector<std::int64_t> sizes, bool channels_last = false) {
  const Bytes element = dtype == "float32" ? 4 : 2;
  const OperandShape shape{dtype, std::move(sizes)};
  return {dtype, shape.sizes, static_cast<Bytes>(shape.elements()) * element, element,
          channels_last ? shape.sizes[1] * element : element};
}

double convolution_on_h100(OperandShape input, OperandShape filters) {
  OpCall op{"aten::cudnn_convolution", {input, filters}};
  op.uses_tf32 = input.dtype == "float32";
  const double pixels = input.elements() / static_cast<double>(input.sizes[1]);
  return time_on_h100(op, static_cast<Bytes>(pixels) * filters.sizes[0] * input.element_bytes);
}

TEST(KernelCost, AConvolutionTakesAsLongAsOnAnH100) {
  const auto expect = [](double modelled, double measured) {
    EXPECT_NEAR(modelled, measured, 0.2 * measured);
  };
  const auto last = [](std::vector<std::int64_t> sizes) {
    return images("bfloat16", std::move(sizes), true);
  };
  const auto single = [](std::vector<std::int64_t> sizes) { return images("float32", std::move(sizes)); };
  expect(convolution_on_h100(last({64, 64, 56, 56}), last({64, 64, 3, 3})), 43.2);
  expect(convolution_on_h100(last({64, 512, 7, 7}), last({512, 512, 3, 3})), 28.1);
  expect(convolution_on_h100(last({32, 640, 32, 32}), last({640, 640, 3, 3})), 319.7);
  expect(convolution_on_h100(last({32, 512, 14, 14}), last({512, 16, 3, 3})), 14.7);  // 32 groups
  expect(convolution_on_h100(last({32, 96, 56, 56}), last({96, 1, 7, 7})), 71.8);     // 96 groups
  expect(convolution_on_h100(single({64, 64, 56, 56}), single({64, 64, 3, 3})), 161.2);
  expect(convolution_on_h100(single({64, 256, 56, 56}), single({64, 256, 1, 1})), 95.4);
}

TEST(KernelCost, TheGradientsOfAConvolutionTakeAsLongAsOnAnH100) {
  const auto time = [](double gradients) {
    const OperandShape image = images("bfloat16", {32, 640, 32, 32}, true);
    OpCall op{"aten::convolution_backward", {image, image, images("bfloat16", {640, 640, 3, 3}, true)}};
    op.gradients = gradients;
    return time_on_h100(op, image.bytes);
  };
  EXPECT_NEAR(time(2), 646.0, 0.2 * 646.0);
  EXPECT_NEAR(time(1), 324.7, 0.2 * 324.7);  // that of the weight alone
}

TEST(KernelCost, TheGradientOfAWeightTakesLongerInTf32) {
  constexpr Bytes kBytes = Bytes{4096} * 4096 * 4;
  const OperandShape rows{"float32", {4096, 4096}, kBytes, 4, 4};
  const OperandShape transposed{"float32", {4096, 4096}, kBytes, 4, 4096 * 4};
  OpCall of_weight{"aten::mm", {transposed, rows}}, of_rows{"aten::mm", {rows, rows}};
  of_weight.uses_tf32 = of_rows.uses_tf32 = true;
  EXPECT_NEAR(time_on_h100(of_weight, kBytes), 526.2, 0.3 * 526.2);
  EXPECT_NEAR(time_on_h100(of_rows, kBytes), 343.3, 0.25 * 343.3);
}

// 16 x 12 heads of width 64. Kernels compute whole tiles of 128 positions, and backward has two beside its
// own.
TEST(KernelCost, AttentionTakesAsLongAsOnAnH100) {
  const auto forward = [](std::int64_t positions) {
    const OperandShape q = images("bfloat16", {16, 12, positions, 64});
    return time_on_h100({"aten::_scaled_dot_product_cudnn_attention", {q, q, q}}, q.bytes);
  };
  const auto backward = [](std::int64_t positions) {
    const OperandShape q = images("bfloat16", {16, 12, positions, 64});
    return time_on_h100({"aten::_scaled_dot_product_cudnn_attention_backward", {q, q, q, q, q}}, 3 * q.bytes);
  };
  for (const auto& [positions, measured] :
       {std::pair{197, 14.8}, {257, 27.8}, {577, 62.9}, {1025, 176.5}, {4096, 1698.4}})
    EXPECT_NEAR(forward(positions), measured, 0.1 * measured) << positions;
  for (const auto& [positions, measured] :
       {std::pair{197, 48.2}, {257, 75.4}, {577, 193.9}, {1025, 462.2}, {4096, 4452.3}})
    EXPECT_NEAR(backward(positions), measured, 0.1 * measured) << positions;
}

// An H100 took 101.6 us in tf32 for a product of DiT-XL/2 with 16 images of 256 patches: [4096, 1152] by
// [1152, 3456]. Without tf32 it would take 0.62 ms at least, at the peak of float32.
TEST(KernelCost, AProductInTf32IsAsFastAsOnAnH100) {
  const KernelCost cost(load_profile("h100-80gb"), {});
  OpCall op{"aten::mm",
            {{"float32", {4096, 1152}, 4096 * 1152 * 4, 4},
             {"float32", {1152, 3456}, 1152 * 3456 * 4, 4, 1152 * 4}}};
  EXPECT_GT(cost.time_of(kGemm, &op, 4096 * 3456 * 4, true).duration, 620'000);
  op.uses_tf32 = true;
  const Nanoseconds duration = cost.time_of(kGemm, &op, 4096 * 3456 * 4, true).duration;
  EXPECT_NEAR(static_cast<double>(duration), 101.6e3, 0.25 * 101.6e3);
}

// An H100 took 524.6 us for the attention of Llama 3.2 1B with 4 x 2048 tokens and a mask.
TEST(KernelCost, AttentionWithAMaskComputesAndReadsAllOfIt) {
  const KernelCost cost(load_profile("h100-80gb"), {});
  const OperandShape q{"bfloat16", {4, 32, 2048, 64}, Bytes{32} << 20, 2};
  const OperandShape mask{"bfloat16", {4, 1, 2048, 2048}, Bytes{32} << 20, 2};
  OpCall op{"aten::_scaled_dot_product_cudnn_attention", {q, q, q, mask}};
  const Nanoseconds without = cost.time_of({}, &op, Bytes{32} << 20, true).duration;
  op.has_mask = true;
  const Nanoseconds with = cost.time_of({}, &op, Bytes{32} << 20, true).duration;
  EXPECT_NEAR(static_cast<double>(with), 524.6e3, 0.1 * 524.6e3);
  EXPECT_LT(static_cast<double>(without), 0.6 * static_cast<double>(with));
}

// An H100 took 223.7 us for the scores of minGPT: 192 products of [512, 512] with an inner dimension of 64.
TEST(KernelCost, AShortInnerDimensionDoesNotHideTheTraffic) {
  const KernelCost cost(load_profile("h100-80gb"), {});
  const OpCall op{"aten::bmm",
                  {{"float32", {192, 512, 64}, Bytes{192} * 512 * 64 * 4, 4},
                   {"float32", {192, 64, 512}, Bytes{192} * 512 * 64 * 4, 4}}};
  const Nanoseconds duration = cost.time_of(kGemm, &op, Bytes{192} * 512 * 512 * 4, true).duration;
  EXPECT_NEAR(static_cast<double>(duration), 223.7e3, 0.2 * 223.7e3);
}

TEST(KernelCost, DtypesMissingInTheProfileRunAtTheFloat32Rate) {
  const KernelCost cost(round_profile(), {});
  const OpCall op = product("complex64", 1024, 8);
  EXPECT_EQ(cost.time_of(kGemm, &op, Bytes{8} << 20, true).duration, 2150057);  // 2 * 1024^3 at 1 TFLOP/s
}

KernelTimes some_times() {
  KernelTimes times;
  times.add_op("aten::mm(float32[4,4],float32[4,4])", 7000);
  times.add_op("aten::cat([4,4],[4,4])", 6000);
  times.add_kernel("cublasGemmEx|1,1,1|1,1,1", 5000);
  return times;
}

TEST(KernelCost, ARecordedOperatorChargesItsFirstKernel) {
  const KernelCost cost(round_profile(), some_times());
  const OpCall op = product("float32", 4, 4);
  EXPECT_EQ(cost.time_of(kGemm, &op, 64, true).duration, 7000);
  EXPECT_EQ(cost.time_of(kGemm, &op, 64, false).duration, 0);
}

TEST(KernelCost, AnOperatorOnListsIsFoundWithoutDtypes) {
  const KernelCost cost(round_profile(), some_times());
  const OpCall op{"aten::cat", {square("float32", 4, 4), square("float32", 4, 4)}};
  EXPECT_EQ(cost.time_of({.name = "cat_kernel"}, &op, 128, true).duration, 6000);
}

TEST(KernelCost, UsesARecordedKernelIfTheOperatorWasNotRecorded) {
  const KernelCost cost(round_profile(), some_times());
  const OpCall op = product("float32", 8, 4);
  EXPECT_EQ(cost.time_of(kGemm, &op, 256, true).duration, 5000);
  EXPECT_EQ(cost.time_of(kGemm, nullptr, 0, true).duration, 5000);
}

TEST(KernelCost, AKernelWithKnownArgumentsTakesItsOwnRecordedTime) {
  KernelTimes times = some_times();
  times.add_kernel("triton_add|1,1,1|1,1,1", 3000);
  const OpCall op = product("float32", 4, 4);
  EXPECT_EQ(KernelCost(round_profile(), times)
                .time_of({.name = "triton_add", .argument_bytes = 12 << 20}, &op, 64, true)
                .duration,
            3000);
}

TEST(KernelCost, ReportsTheSourceOfATime) {
  const KernelCost cost(round_profile(), some_times());
  const OpCall recorded = product("float32", 4, 4), other = product("float32", 8, 4);
  EXPECT_EQ(cost.time_of(kGemm, &recorded, 64, true).source, TimeSource::kRecordedOp);
  EXPECT_EQ(cost.time_of(kGemm, &recorded, 64, false).source, TimeSource::kRecordedOp);
  EXPECT_EQ(cost.time_of(kGemm, &other, 256, true).source, TimeSource::kRecordedKernel);
  EXPECT_EQ(cost.time_of({.name = "f"}, &other, 256, true).source, TimeSource::kEstimate);
}

TEST(KernelCost, UsesTheRooflineForUnrecordedKernels) {
  const KernelCost cost(round_profile(), some_times());
  const OpCall op{"aten::add", {{"float32", {1 << 20}, 4 << 20}}};
  EXPECT_EQ(cost.time_of({.name = "add_kernel"}, &op, 4 << 20, true).duration, 9389);
}

}  // namespace
}  // namespace offprof

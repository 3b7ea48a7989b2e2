#include "engine/devices/virtual_gpu/work/kernel_work.h"

#include <gtest/gtest.h>

#include "engine/devices/virtual_gpu/model/kernel_cost.h"
#include "engine/devices/virtual_gpu/model/product_time.h"

namespace offprof {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

/// 256 rows of 32 Ki float32 numbers: 32 MiB.
const OperandShape kRows{"float32", {256, 32 << 10}, 32 * kMiB, 4};

KernelLaunch one_block_a_row(std::string_view name) {
  return {.name = name, .grid = {256, 1, 1}, .block = {1024, 1, 1}};
}

TEST(BaseName, LeavesOutNamespacesAndArguments) {
  EXPECT_EQ(
      base_name(
          "void at::native::(anonymous namespace)::softmax_warp_forward<float, float, 10>(float*, int)"),
      "softmax_warp_forward");
  EXPECT_EQ(base_name("cublasGemmEx"), "cublasGemmEx");
  EXPECT_EQ(base_name("kernel(int)"), "kernel");
  EXPECT_EQ(base_name(""), "");
}

TEST(KernelWork, ALongSoftmaxReadsItsRowsThreeTimes) {
  const OpCall op{"aten::_log_softmax", {kRows}};
  const auto kernel = work_of_kernel(
      one_block_a_row(
          "void at::native::cunn_SoftMaxForward<4, float, float, float>(float*, const float*, int)"),
      op, 32 * kMiB, true);
  EXPECT_EQ(kernel.work.bytes, 64 * kMiB);
  EXPECT_EQ(kernel.bytes_read_again, 64 * kMiB);
  EXPECT_EQ(kernel.bytes_per_block, static_cast<double>(256 << 10));  // a row, in and out
}

TEST(KernelWork, ASoftmaxInAWiderDtypeWritesWhatItAllocates) {
  const OpCall op{"aten::_softmax", {{"bfloat16", {256, 32 << 10}, 16 * kMiB}}};
  EXPECT_EQ(work_of_kernel(one_block_a_row("softmax_warp_forward"), op, 32 * kMiB, true).work.bytes,
            48 * kMiB);
}

TEST(KernelWork, AShortSoftmaxReadsItsRowsOnce) {
  const OpCall op{"aten::_log_softmax", {kRows}};
  const auto kernel = work_of_kernel(one_block_a_row("softmax_warp_forward"), op, 32 * kMiB, true);
  EXPECT_EQ(kernel.work.bytes, 64 * kMiB);
  EXPECT_EQ(kernel.bytes_read_again, 0);
}

TEST(KernelWork, ABackwardOfLayerNormHasWorkInEachOfItsKernels) {
  const OpCall op{"aten::native_layer_norm_backward", {kRows, kRows, kRows}};
  const auto inputs = work_of_kernel(one_block_a_row("layer_norm_grad_input_kernel"), op, 0, true);
  EXPECT_EQ(inputs.work.bytes, 96 * kMiB);
  EXPECT_EQ(inputs.bytes_read_again, 64 * kMiB);
  const auto weights = work_of_kernel(one_block_a_row("GammaBetaBackwardCUDAKernelTemplate"), op, 0, false);
  EXPECT_EQ(weights.work.bytes, 64 * kMiB);
}

TEST(KernelWork, OtherKernelsLeaveTheWorkOfTheirOperatorToTheFirst) {
  const OpCall op{"aten::add", {kRows, kRows}};
  EXPECT_EQ(work_of_kernel({.name = "vectorized_elementwise_kernel"}, op, 32 * kMiB, true).work.bytes,
            96 * kMiB);
  EXPECT_EQ(work_of_kernel({.name = "vectorized_elementwise_kernel"}, op, 32 * kMiB, false).work.bytes, 0);
}

TEST(KernelWork, CountsElementsOfKernelsThatAreNotVectorized) {
  const OpCall op{"aten::mul", {kRows, {"float32", {32 << 10}, 128 << 10, 4}}};
  EXPECT_EQ(work_of_kernel({.name = "vectorized_elementwise_kernel"}, op, 32 * kMiB, true).single_elements,
            0);
  EXPECT_EQ(work_of_kernel({.name = "elementwise_kernel"}, op, 32 * kMiB, true).single_elements,
            256 * (32 << 10));
}

TEST(KernelWork, CountsTheElementsOfAnOuterBroadcast) {
  const OpCall op{"aten::add", {{"float32", {4096, 1}, 16 << 10, 4}, {"float32", {1, 4096}, 16 << 10, 4}}};
  EXPECT_EQ(work_of_kernel({.name = "elementwise_kernel"}, op, 64 * kMiB, true).single_elements, 4096 * 4096);
}

constexpr double kElements = 256 * (32 << 10);

double elements_of_copy(Bytes step_bytes) {
  OperandShape from = kRows;
  from.step_bytes = step_bytes;
  OperandShape to = kRows;
  to.step_bytes = 4;
  return work_of_kernel({.name = "elementwise_kernel"}, {"aten::copy_", {to, from}}, 0, true).single_elements;
}

TEST(KernelWork, AnOperandMoreTakesLonger) {
  const double one = elements_of_copy(4);
  EXPECT_LT(one, kElements);
  const OpCall add{"aten::add", {kRows, kRows}};
  EXPECT_EQ(work_of_kernel({.name = "elementwise_kernel"}, add, 32 * kMiB, true).single_elements, kElements);
  const OpCall where{"aten::where", {kRows, kRows, kRows}};
  EXPECT_GT(work_of_kernel({.name = "elementwise_kernel"}, where, 32 * kMiB, true).single_elements,
            kElements);
}

TEST(KernelWork, ATransposedCopyReadsASectorForEachElement) {
  EXPECT_EQ(elements_of_copy(1024), 2.5 * kElements);
  EXPECT_LT(elements_of_copy(12), elements_of_copy(1024));  // images of three channels share sectors
}

// Reduce.cuh: a sum over rows stages more than its result.
TEST(KernelWork, TheWorkspaceOfASumIsNoTraffic) {
  const OpCall op{"aten::sum", {kRows}};
  const Bytes with_workspace = work_of_kernel({.name = "reduce_kernel"}, op, 1000 * kMiB, true).work.bytes;
  EXPECT_NEAR(static_cast<double>(with_workspace), 48 * kMiB / 0.85, 1);  // 32 MiB and half of that
}

double time_of_sum(std::int64_t rows, std::int64_t columns, std::uint32_t blocks, std::uint32_t sharing) {
  const Bytes allocated = sharing > 1 ? 100 * kMiB : columns * 2;  // a workspace too
  const OpCall op{"aten::sum", {{"bfloat16", {rows, columns}, rows * columns * 2, 2}}};
  const KernelLaunch launch{.name = "reduce_kernel", .grid = {blocks, sharing, 1}, .block = {32, 4, 1}};
  return static_cast<double>(
      modelled_time(load_profile("h100-80gb"), launch, work_of_kernel(launch, op, allocated, true)));
}

// On an H100 a sum over 65536 rows of 256 took 74.9 us, a ninth of it to read them: the last block adds 1024
// sums. Over 512 rows of 1024, eight blocks take 18.3 us.
TEST(KernelWork, BlocksThatShareAResultAddTheirSumsAtTheEnd) {
  EXPECT_NEAR(time_of_sum(65536, 256, 2, 1024), 74.9e3, 0.2 * 74.9e3);
  EXPECT_NEAR(time_of_sum(512, 1024, 8, 1), 18.3e3, 0.25 * 18.3e3);
}

TEST(KernelWork, EachLaunchOfAnOptimizerTakesItsChunks) {
  const OperandShape tensor{"float32", {1 << 20}, 4 * kMiB, 4};
  const OpCall op{"aten::_foreach_mul_", {tensor, tensor}, 2};  // 32 chunks of 64 Ki elements
  const KernelLaunch half{.name = "multi_tensor_apply_kernel", .grid = {16, 1, 1}, .block = {512, 1, 1}};
  const KernelWork first = work_of_kernel(half, op, 0, true), second = work_of_kernel(half, op, 0, false);
  EXPECT_EQ(first.work.bytes, second.work.bytes);
  EXPECT_NEAR(static_cast<double>(first.work.bytes), 8.0 * kMiB / 0.9, 1);
  EXPECT_EQ(first.dependent_loads, 32);  // 64 Ki elements by 512 threads, four at a time
}

// group_norm_kernel.cu: moments, factors of the channels, the result; all but the factors go over the input.
TEST(KernelWork, AGroupNormGoesOverItsInputTwiceForwardAndBackward) {
  const double elements = 256 * (32 << 10);
  const OpCall forward{"aten::native_group_norm", {kRows}};
  const KernelWork moments = work_of_kernel({.name = "RowwiseMomentsCUDAKernel"}, forward, 0, true);
  EXPECT_EQ(moments.work.bytes, 32 * kMiB);
  EXPECT_EQ(moments.single_elements, 1.2 * elements);
  KernelLaunch over_all{.name = "elementwise_kernel", .grid = {32 << 10, 1, 1}, .block = {128, 1, 1}};
  EXPECT_EQ(work_of_kernel(over_all, forward, 32 * kMiB, false).work.bytes, 64 * kMiB);
  EXPECT_GT(work_of_kernel(over_all, forward, 32 * kMiB, false).single_elements, elements);  // 4 operands
  const OpCall backward{"aten::native_group_norm_backward", {kRows, kRows}};
  const KernelWork sums = work_of_kernel({.name = "ComputeInternalGradientsCUDAKernel"}, backward, 0, true);
  EXPECT_EQ(sums.work.bytes, 64 * kMiB);
  EXPECT_EQ(sums.single_elements, 2 * elements);
  EXPECT_EQ(work_of_kernel(over_all, backward, 32 * kMiB, false).work.bytes, 96 * kMiB);
  over_all.grid[0] = 64;
  EXPECT_EQ(work_of_kernel(over_all, backward, 32 * kMiB, false).work.bytes, 0);
}

TEST(KernelWork, AGatherCountsTheRowsThatItReturns) {
  const OpCall op{"aten::embedding",
                  {{"float32", {50'000, 1024}, 4 * 50'000 * 1024, 4}, {"int64", {2048}, 16 << 10, 8}}};
  const auto kernel = work_of_kernel({.name = "indexSelectLargeIndex"}, op, 8 * kMiB, true);
  EXPECT_EQ(kernel.work.bytes, 16 * kMiB + (16 << 10));
}

// Indexing.cu: index_select calls gather with a result of its own and indices that are broadcast over the
// rows.
TEST(KernelWork, AGatherIntoATensorOfItsCaller) {
  const OpCall op{"aten::gather",
                  {{"float32", {50'000, 1024}, 4 * 50'000 * 1024, 4},
                   {"int64", {2048, 1024}, 16 * kMiB, 8},
                   {"float32", {2048, 1024}, 8 * kMiB, 4}}};
  EXPECT_EQ(work_of_kernel({.name = "vectorized_gather_kernel"}, op, 0, true).work.bytes, 16 * kMiB);
}

TEST(KernelWork, TheGradientOfSoftmaxMayHaveAProductBeside) {
  const OpCall op{"aten::_softmax_backward_data", {kRows, kRows}};
  const auto kernel = work_of_kernel(one_block_a_row("softmax_warp_backward"), op, 64 * kMiB, false);
  EXPECT_EQ(kernel.work.bytes, 96 * kMiB);
}

// Loss.cu: one block, whose threads each read a target and then what it points to.
TEST(KernelWork, TheLossOfTargetsMakesDependentLoads) {
  const OpCall op{"aten::nll_loss_forward", {kRows, {"int64", {4096}, 32 << 10, 8}}};
  const KernelLaunch launch{.name = "nll_loss_forward_reduce_cuda_kernel_2d", .block = {32, 1, 1}};
  EXPECT_EQ(work_of_kernel(launch, op, 0, true).dependent_loads, 2 * 4096 / 32);
}

// x-transformers computes its loss from [8, 20000, 1024] logits. An H100 took 22.8 ms forward and 10.9 ms
// backward: 8 blocks of 1024 threads, of which each goes through 20000 numbers.
TEST(KernelWork, ASoftmaxAlongAnotherDimensionIsBoundByItsLongestWay) {
  const OperandShape logits{"bfloat16", {8, 20'000, 1024}, Bytes{8} * 20'000 * 1024 * 2, 2};
  const OpCall forward{"aten::_log_softmax", {logits}};
  const OpCall backward{"aten::_log_softmax_backward_data", {logits, logits}};
  KernelLaunch launch{.name = "cunn_SpatialSoftMaxForward", .grid = {8, 1, 1}, .block = {1, 1024, 1}};
  const auto time_of = [&](const OpCall& op) {
    return static_cast<double>(
        modelled_time(load_profile("h100-80gb"), launch, work_of_kernel(launch, op, logits.bytes, true)));
  };
  EXPECT_NEAR(time_of(forward), 22.8e6, 0.25 * 22.8e6);
  launch.name = "cunn_SpatialSoftMaxBackward";
  EXPECT_NEAR(time_of(backward), 10.9e6, 0.25 * 10.9e6);
  // With enough threads the memory bounds it. Backward reads the gradient twice and the result once, and
  // writes.
  launch.grid[1] = 100;
  EXPECT_NEAR(time_of(backward), 4 * static_cast<double>(logits.bytes) / (3350 * 0.917), 0.05e6);
}

TEST(KernelWork, TheLossOfImagesReadsItsTargets) {
  const OpCall op{"aten::nll_loss2d_backward",
                  {{"float32", {}, 4, 4},
                   {"float32", {8, 20'000, 1024}, Bytes{8} * 20'000 * 1024 * 4, 4},
                   {"int64", {8, 1024}, 8 * 1024 * 8, 8}}};
  const KernelLaunch launch{.name = "nll_loss2d_backward_kernel", .grid = {4, 1, 1}, .block = {1024, 1, 1}};
  EXPECT_EQ(work_of_kernel(launch, op, 0, true).dependent_loads, 2);
  EXPECT_EQ(work_of_kernel(launch, op, 0, true).work.bytes, 0);
}

// DeepViT normalizes 12 heads for each pair of patches. An H100 took 1.87 ms forward and 0.95 ms backward.
TEST(KernelWork, ManyShortRowsWaitForEachOther) {
  const OperandShape rows{"float32", {1'241'888, 12}, Bytes{1'241'888} * 12 * 4, 4};
  KernelLaunch launch{.name = "vectorized_layer_norm_kernel", .grid = {1'241'888, 1, 1}, .block = {32, 4, 1}};
  const auto time_of = [&](const OpCall& op) {
    return static_cast<double>(
        modelled_time(load_profile("h100-80gb"), launch, work_of_kernel(launch, op, rows.bytes, true)));
  };
  const double forward = time_of({"aten::native_layer_norm", {rows}});
  EXPECT_GT(forward, 1.1e6);
  EXPECT_LT(forward, 1.9e6);
  EXPECT_LT(time_of({"aten::_fused_rms_norm", {rows}}), 0.5 * forward);
  launch.name = "layer_norm_grad_input_kernel_vectorized";
  EXPECT_NEAR(time_of({"aten::native_layer_norm_backward", {rows, rows}}), 0.95e6, 0.2 * 0.95e6);
}

// GPT-2's gradients of 768 weights and biases from 8192 rows took 46 us on an H100.
TEST(KernelWork, SumsOfColumnsByFewBlocksHaveElementsOnTheWay) {
  const OperandShape rows{"float32", {8192, 768}, Bytes{8192} * 768 * 4, 4};
  const OpCall op{"aten::native_layer_norm_backward", {rows, rows}};
  const KernelLaunch launch{
      .name = "GammaBetaBackwardCUDAKernelTemplate", .grid = {24, 1, 1}, .block = {32, 32, 1}};
  const Nanoseconds duration =
      modelled_time(load_profile("h100-80gb"), launch, work_of_kernel(launch, op, 0, false));
  EXPECT_NEAR(static_cast<double>(duration), 46e3, 0.25 * 46e3);
}

DeviceProfile profile() {
  DeviceProfile profile;
  profile.memory_bytes_per_second = 1e12;
  profile.l2_cache_bytes = 10 * kMiB;
  profile.multiprocessors = 100;
  profile.max_threads_per_multiprocessor = 2048;
  profile.max_blocks_per_multiprocessor = 32;
  profile.clock_khz = 1'000'000;
  profile.memory_latency_ns = 500;
  profile.flops_per_second = {{"float32", 1e12}};
  return profile;
}

double time_of(const KernelLaunch& launch, const KernelWork& work) {
  return static_cast<double>(modelled_time(profile(), launch, work));
}

TEST(ModelledTime, SecondReadsCostNothingWhileTheyFitTheCache) {
  const KernelLaunch launch{.grid = {100, 1, 1}, .block = {1024, 1, 1}};
  KernelWork work{.work = {.bytes = 100 * kMiB}, .bytes_read_again = 100 * kMiB};
  const double once = 100 * kMiB / 1e3;
  work.bytes_per_block = 0.05 * kMiB;  // 100 resident blocks use half of the cache
  EXPECT_NEAR(time_of(launch, work), once, 1);
  work.bytes_per_block = 0.2 * kMiB;  // twice the cache
  EXPECT_NEAR(time_of(launch, work), 2 * once, 1);
  work.bytes_per_block = 0.105 * kMiB;  // 1.05 times the cache, in the middle of the decline
  EXPECT_NEAR(time_of(launch, work), 1.5 * once, 1);
}

TEST(ModelledTime, FewThreadsCannotFillTheBandwidth) {
  // 10 blocks of 1000 threads with 16 bytes each in 500 ns: 320 GB/s of 1 TB/s.
  EXPECT_NEAR(time_of({.grid = {10, 1, 1}, .block = {1000, 1, 1}}, {.work = {.bytes = 320'000'000}}), 1e6, 1);
}

TEST(ModelledTime, BlocksBeyondTheResidentOnesDoNotAddBandwidth) {
  // One multiprocessor holds 2 blocks of 1024 threads, 100 of them 200: 6.5 TB/s, more than the memory has.
  EXPECT_NEAR(time_of({.grid = {100'000, 1, 1}, .block = {1024, 1, 1}}, {.work = {.bytes = 1'000'000'000}}),
              1e6, 1);
}

TEST(ModelledTime, ElementsOneByOneTakeCycles) {
  // 1e8 elements on 100 multiprocessors of 1 GHz, one a cycle.
  EXPECT_NEAR(time_of({}, {.single_elements = 1e8, .has_unknown_launch = true}), 1e6, 1);
}

TEST(ModelledTime, FewBlocksReachAPartOfTheBandwidth) {
  const KernelWork quarter{
      .work = {.bytes = 100'000'000}, .most_multiprocessors = 25, .has_unknown_launch = true};
  EXPECT_NEAR(time_of({}, quarter), 4e5, 1);
}

TEST(ModelledTime, FewThreadsCannotFillTheElements) {
  // 10 blocks of 1000 threads with one element each in 500 ns: 20 a ns, of 100.
  const KernelWork work{.single_elements = 2e7, .single_elements_on_the_way = 1};
  EXPECT_NEAR(time_of({.grid = {10, 1, 1}, .block = {1000, 1, 1}}, work), 1e6, 1);
}

TEST(ModelledTime, AConvolutionFollowsTheReorderOfItsImages) {
  KernelWork work{.work = {.bytes = 100'000'000}, .has_unknown_launch = true};
  const double without = time_of({}, work);
  work.work.convolution = ConvolutionShape{.reordered_bytes = 50'000'000, .reorders = 2};
  EXPECT_NEAR(time_of({}, work), without + 5e4, 1);
}

TEST(ModelledTime, BlocksThatComeOneAfterAnotherWait) {
  // 2 resident blocks of 1024 threads on each of 100 multiprocessors: 10 times as many wait 10 times.
  EXPECT_NEAR(time_of({.grid = {2000, 1, 1}, .block = {1024, 1, 1}}, {.waits_of_block = 3}), 10 * 3 * 500, 1);
}

TEST(ModelledTime, DependentLoadsTakeTheirLatency) {
  EXPECT_EQ(time_of({}, {.dependent_loads = 256}), 256 * 500);
  EXPECT_EQ(time_of({}, {.dependent_loads = 256, .closing_loads = 10}), 266 * 500);
}

TEST(TileShare, IsOneForWholeWavesOfLargeTiles) {
  EXPECT_EQ(tile_share({.rows = 1280, .columns = 2560, .inner = 256}, 100), 1);
}

TEST(TileShare, TheLastWaveCountsAsAWholeOne) {
  // 101 tiles of 128 x 256 take two waves. Half-width tiles of share 0.9: 202 in three waves, 0.9 * 202 /
  // 300.
  EXPECT_NEAR(tile_share({.rows = 101 * 128, .columns = 256, .inner = 256}, 100), 0.9 * 202 / 300, 1e-9);
}

TEST(TileShare, ASmallResultIsDividedAlongItsInnerDimension) {
  const ProductShape small{.rows = 128, .columns = 256, .inner = 64};
  ProductShape deep = small;
  deep.inner = 1 << 20;
  EXPECT_GT(tile_share(deep, 100), 8 * tile_share(small, 100));
}

TEST(AttentionTime, ACausalMaskHalvesTheOperations) {
  const OperandShape q{"bfloat16", {1, 8, 4096, 128}, 8 * kMiB};
  OpCall op{"aten::_scaled_dot_product_flash_attention", {q, q, q}};
  const double all = work_of(op, 0).flops;
  EXPECT_EQ(all, 4.0 * 8 * 4096 * 4096 * 128);
  op.is_causal = true;
  EXPECT_EQ(work_of(op, 0).flops, all / 2);
}

// Lists of 3 parameters, gradients and two moments, as fused Adam takes them: it writes all but the
// gradients.
TEST(OptimizerWork, AFusedOptimizerWritesAllButTheGradients) {
  OpCall op{"aten::_fused_adamw_", {}, 3};
  for (int list = 0; list < 4; ++list)
    for (const std::int64_t rows : {1, 2, 3}) op.operands.push_back({"float32", {rows, 1024}, rows * 4096});
  EXPECT_EQ(work_of(op, 0).bytes, (4 + 3) * 6 * 4096);
}

}  // namespace
}  // namespace offprof

#include "engine/devices/virtual_gpu/work/image_kernels.h"

#include <gtest/gtest.h>

#include <utility>

#include "engine/devices/virtual_gpu/model/kernel_cost.h"

namespace offprof {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

TEST(ImageKernels, ABatchNormHasABlockForEachChannel) {
  const OperandShape image{"float32", {8, 16, 64, 64}, 2 * kMiB, 4};
  const auto kernel = work_of_kernel({.name = "cudnnBatchNormalizationForwardTrainingEx"},
                                     {"aten::cudnn_batch_norm", {image}}, 2 * kMiB, true);
  EXPECT_EQ(kernel.most_multiprocessors, 16);
  EXPECT_NEAR(static_cast<double>(kernel.work.bytes), 6 * kMiB / 0.85, 1);  // read twice
}

double time_of_norm(const char* name, std::vector<std::int64_t> sizes) {
  const OperandShape image{"float32", std::move(sizes)};
  const auto bytes = static_cast<Bytes>(image.elements()) * 4;
  const OperandShape images{"float32", image.sizes, bytes, 4};
  const KernelLaunch launch{.name = name};
  const KernelWork kernel = work_of_kernel(launch, {"aten::cudnn_batch_norm", {images, images}}, bytes, true);
  return static_cast<double>(modelled_time(load_profile("h100-80gb"), launch, kernel));
}

// cuDNN's kernels on an H100 for 64 images in float32.
TEST(ImageKernels, ABatchNormTakesAsLongAsOnAnH100) {
  constexpr auto kForward = "cudnnBatchNormalizationForwardTrainingEx",
                 kBackward = "cudnnBatchNormalizationBackwardEx";
  EXPECT_NEAR(time_of_norm(kForward, {64, 256, 56, 56}), 242.6e3, 0.1 * 242.6e3);
  EXPECT_NEAR(time_of_norm(kForward, {64, 2048, 7, 7}), 46.6e3, 0.1 * 46.6e3);
  EXPECT_NEAR(time_of_norm(kBackward, {64, 64, 56, 56}), 313.3e3, 0.15 * 313.3e3);
  EXPECT_NEAR(time_of_norm(kBackward, {64, 2048, 14, 14}), 174.1e3, 0.1 * 174.1e3);
}

// CvT's gradients of [32, 64, 56, 56] images by filters of 3 x 3 took 49 us on an H100.
TEST(ImageKernels, ADepthwiseConvolutionTakesItsFiltersElements) {
  const OperandShape image{"bfloat16", {32, 64, 56, 56}, Bytes{32} * 64 * 56 * 56 * 2, 2};
  const OpCall op{"aten::convolution_backward", {image, image, {"bfloat16", {64, 1, 3, 3}, 1152, 2}}};
  const auto kernel = work_of_kernel({.name = "conv_depthwise2d_backward_kernel"}, op, image.bytes, false);
  EXPECT_NEAR(kernel.single_elements, (4 + 0.23 * 9) * 32 * 64 * 56 * 56, 1);
  EXPECT_EQ(kernel.work.bytes, 2 * image.bytes);
  // A result of half the height and width has a quarter of the elements.
  const OpCall forward{"aten::_conv_depthwise2d", {image, {"bfloat16", {64, 1, 3, 3}, 1152, 2}}};
  EXPECT_NEAR(work_of_kernel({.name = "conv_depthwise2d_forward_kernel"}, forward, image.bytes / 4, true)
                  .single_elements,
              (1.64 + 0.205 * 9) * 32 * 64 * 28 * 28, 1);
  EXPECT_GT(KernelCost(load_profile("h100-80gb"), {})
                .time_of({.name = "conv_depthwise2d_forward_kernel"}, &forward, image.bytes / 4, true)
                .flops,
            0);
}

}  // namespace
}  // namespace offprof

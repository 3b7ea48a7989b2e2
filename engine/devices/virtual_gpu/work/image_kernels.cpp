#include "engine/devices/virtual_gpu/work/image_kernels.h"

#include <utility>

namespace offprof {
namespace {

/// Wraps `work`: a thread of a batch norm loads few elements ahead, which limits kernels of few blocks.
WorkRule of_batch_norm(WorkRule work) {
  return [work = std::move(work)](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    constexpr double kElementsOnTheWay = 1.5;  // on an H100
    KernelWork kernel = work(launch, op, allocated);
    kernel.single_elements_on_the_way = kElementsOnTheWay;
    return kernel;
  };
}

/// cuDNN's batch norm: one block for each channel, which stays in registers if it is small; if not, the block
/// goes through it twice.
struct ChannelPasses {
  std::size_t inputs = 1;
  double small_share = 1, small_waits = 0;  ///< of the bandwidth
  double large_share = 1, loss_of_single_block = 0;
};

/// Figures are those of cuDNN 9.19 on an H100.
constexpr ChannelPasses kNormForward = {1, 0.75, 2.4, 0.85, 0}, kNormBackward = {2, 0.65, 1.85, 0.88, 0.33};

WorkRule by_channels(const ChannelPasses& passes) {
  return [passes](const KernelLaunch& launch, const OpCall& op, Bytes) {
    constexpr double kMostElementsInRegisters = 16384;
    KernelWork kernel = one_pass(passes.inputs)(launch, op, bytes_of(op, 0));
    kernel.has_unknown_launch = true;
    if (op.operands.empty() || op.operands.front().sizes.size() < 2) return kernel;
    const auto channels = static_cast<double>(op.operands.front().sizes[1]);
    kernel.most_multiprocessors = channels;
    const bool is_small = op.operands.front().elements() <= kMostElementsInRegisters * channels;
    const double share = is_small ? passes.small_share : passes.large_share;
    if (is_small) {
      kernel.waits_of_block = passes.small_waits;
    } else {
      kernel.work.bytes += reading(passes.inputs)(launch, op, 0).work.bytes;
      kernel.loss_of_single_block = passes.loss_of_single_block;
    }
    kernel.work.bytes = static_cast<Bytes>(static_cast<double>(kernel.work.bytes) / share);
    return kernel;
  };
}

/// Wraps `work`: the last blocks exchange their sums at the end, in so many loads.
WorkRule closing(double loads, WorkRule work) {
  return [loads, work = std::move(work)](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    KernelWork kernel = work(launch, op, allocated);
    kernel.closing_loads = loads;
    return kernel;
  };
}

/// Reads the first `inputs` operands once and writes a tensor like the first one.
WorkRule result_like_input(std::size_t inputs) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes) {
    return one_pass(inputs)(launch, op, bytes_of(op, 0));
  };
}

/// Time for an element of the result as a share of the time of an elementwise kernel: `once`, and
/// `of_product` for each element of the filter.
struct DepthwiseShare {
  double once, of_product;
  double with(const OperandShape& weight) const { return once + of_product * filter_elements(weight); }
};

/// Convolution of each channel of an image by a filter of its own. Shares are those of an H100.
KernelWork depthwise_forward(const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
  constexpr DepthwiseShare kShare = {1.64, 0.205};
  KernelWork kernel = one_pass(1)(launch, op, allocated);
  kernel.has_unknown_launch = true;
  if (op.operands.size() < 2 || op.operands[0].element_bytes == 0) return kernel;
  const double results = static_cast<double>(allocated) / static_cast<double>(op.operands[0].element_bytes);
  kernel.single_elements = results * kShare.with(op.operands[1]);
  return kernel;
}

/// Its gradients, from (gradient, image, weight): of the image, or of the weight, for each element of operand
/// `counted`.
WorkRule depthwise_backward(std::size_t counted, DepthwiseShare share) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes) {
    KernelWork kernel = reading(2)(launch, op, 0);
    kernel.has_unknown_launch = true;
    if (op.operands.size() < 3) return kernel;
    kernel.single_elements = op.operands[counted].elements() * share.with(op.operands[2]);
    return kernel;
  };
}

}  // namespace

/// Shares of the time of an elementwise kernel are those of an H100 (traces/recorded/h100/kernels.csv).
WorkByName image_kernels() {
  return {// Moments, then the result; one block for each channel.
          {"batch_norm_collect_statistics_kernel", of_batch_norm(reading_singly(1))},
          {"batch_norm_transform_input_kernel", with_waits(2.5, at_least(0.78, one_pass(1)))},
          // (gradient, input): both for their sums and for the result.
          {"batch_norm_backward_kernel", of_batch_norm(at_least(2, one_pass(2)))},
          {"cudnnBatchNormalizationForwardTrainingEx", by_channels(kNormForward)},
          {"cudnnBatchNormalizationBackwardEx", by_channels(kNormBackward)},
          // The same for images whose channels come last, which several blocks share.
          {"batch_norm_collect_statistics_channels_last_kernel", closing(10, at_least(1.06, reading(1)))},
          {"batch_norm_transform_input_channels_last_kernel", at_least(0.58, result_like_input(1))},
          {"batch_norm_backward_reduce_channels_last_kernel", closing(5.5, at_least(0.78, reading(2)))},
          {"batch_norm_backward_elemt_channels_last_kernel", at_least(0.78, result_like_input(2))},
          // An output looks at each input below it, and in backward, an input at each output above it.
          {"max_pool_forward_nchw", at_least(1, one_pass(1))},
          {"max_pool_backward_nchw", at_least(3, one_pass(3), 1)},
          {"conv_depthwise2d_forward_kernel", depthwise_forward},
          {"conv_depthwise2d_forward_kernel_generic", depthwise_forward},
          {"conv_depthwise2d_backward_kernel", depthwise_backward(1, {4, 0.23})},
          {"conv_depthwise2d_grad_weight_kernel", depthwise_backward(0, {2.75, 0.48})}};
}

double single_channels_share(const OpCall& op) {
  constexpr DepthwiseShare kForward = {0.5, 0.042}, kBackward = {1.1, 0.16};  // both gradients
  if (kind_of(op.name) != OpKind::kConvolution) return 0;
  const bool is_backward = op.name.ends_with("_backward");
  const std::size_t image = is_backward ? 1 : 0;
  if (op.operands.size() < image + 2 || op.operands[image + 1].sizes.size() < 2) return 0;
  const OperandShape &input = op.operands[image], &weight = op.operands[image + 1];
  if (weight.sizes[1] != 1 || input.sizes[1] <= 1 || input.sizes[1] != weight.sizes[0]) return 0;
  return is_backward ? kBackward.with(weight) * op.gradients / 2 : kForward.with(weight);
}

}  // namespace offprof

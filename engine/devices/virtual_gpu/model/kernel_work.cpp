#include "engine/devices/virtual_gpu/model/kernel_work.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>

namespace offprof {
namespace {

/// Operands of a call that a kernel reads, in whole.
Bytes bytes_of(const OpCall& op, std::size_t operand) {
  return operand < op.operands.size() ? op.operands[operand].bytes : 0;
}

double elements_of(const OperandShape& operand) {
  double elements = 1;
  for (const std::int64_t size : operand.sizes) elements *= static_cast<double>(size);
  return elements;
}

using Work = std::function<KernelWork(const KernelLaunch& launch, const OpCall& op, Bytes allocated)>;

/// Reads the first `inputs` operands once and writes the allocated result.
Work one_pass(std::size_t inputs) {
  return [=](const KernelLaunch&, const OpCall& op, Bytes allocated) {
    KernelWork kernel{.work = {.bytes = allocated}};
    for (std::size_t i = 0; i < inputs; ++i) kernel.work.bytes += bytes_of(op, i);
    return kernel;
  };
}

/// The same, one row a block. Reads the first `repeated` operands `times` more.
Work row_passes(std::size_t inputs, std::size_t repeated, Bytes times) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    KernelWork kernel = one_pass(inputs)(launch, op, allocated);
    for (std::size_t i = 0; i < repeated; ++i) kernel.bytes_read_again += times * bytes_of(op, i);
    kernel.bytes_per_block = static_cast<double>(kernel.work.bytes) / launch.blocks();
    return kernel;
  };
}

/// Wraps `work`: each element of the first operand takes at least `share` of the time of an elementwise
/// kernel, since it is converted, or its exponential computed, and threads wait for each other's sums.
Work at_least(double share, Work work) {
  return [share, work = std::move(work)](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    KernelWork kernel = work(launch, op, allocated);
    if (!op.operands.empty()) kernel.single_elements = share * elements_of(op.operands.front());
    return kernel;
  };
}

/// Each block takes a chunk of a tensor of the list, four elements of a thread at a time
/// (MultiTensorApply.cuh, kChunkSize, kBlockSize, kILP). A launch has few blocks, and the next one begins
/// once all are done.
KernelWork chunks_of_lists(const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
  constexpr double kChunk = 65536, kThreads = 512, kElementsOfThread = 4;
  constexpr double kBandwidthShare = 0.9;  // of one launch after the other; on an H100
  double chunks = 0, largest = 0;
  for (std::size_t i = 0; i < std::min(op.list_length, op.operands.size()); ++i) {
    const double elements = elements_of(op.operands[i]);
    chunks += std::ceil(elements / kChunk);
    largest = std::max(largest, std::min(elements, kChunk));
  }
  if (chunks == 0) return {};
  const auto bytes = static_cast<double>(work_of(op, allocated).bytes);
  KernelWork kernel{.has_unknown_launch = true};
  kernel.work.bytes = static_cast<Bytes>(bytes * std::min(1.0, launch.blocks() / chunks) / kBandwidthShare);
  const double loads = op.name.find("_fused_") != std::string_view::npos ? 2 : 1;
  kernel.dependent_loads = loads * std::ceil(largest / (kThreads * kElementsOfThread));
  return kernel;
}

/// Reads (gradient, result) once, the gradient `times` more, and writes the gradient of the input. The
/// operator may have allocated their product too.
Work gradient_of_softmax(Bytes times) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    return row_passes(2, 1, times)(launch, op, std::min(allocated, bytes_of(op, 1)));
  };
}

/// Reads (gradient, input) twice, one row a block, and writes the gradient of the input. The operator has
/// allocated the gradients of weight and bias too.
KernelWork gradient_of_normalized(const KernelLaunch& launch, const OpCall& op, Bytes) {
  return row_passes(2, 2, 1)(launch, op, bytes_of(op, 1));
}

/// Reads the first `inputs` operands once. What it writes is small.
Work reading(std::size_t inputs) {
  return [=](const KernelLaunch&, const OpCall& op, Bytes) {
    KernelWork kernel;
    for (std::size_t i = 0; i < inputs; ++i) kernel.work.bytes += bytes_of(op, i);
    return kernel;
  };
}

/// The same, one element at a time.
Work reading_singly(std::size_t inputs) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    KernelWork kernel = reading(inputs)(launch, op, allocated);
    for (std::size_t i = 0; i < std::min(inputs, op.operands.size()); ++i)
      kernel.single_elements += elements_of(op.operands[i]);
    return kernel;
  };
}

/// Wraps `work`: a thread of a batch norm loads few elements ahead, which limits kernels of few blocks.
Work of_batch_norm(Work work) {
  return [work = std::move(work)](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    constexpr double kElementsOnTheWay = 1.5;  // on an H100
    KernelWork kernel = work(launch, op, allocated);
    kernel.single_elements_on_the_way = kElementsOnTheWay;
    return kernel;
  };
}

/// Reads the first `inputs` operands once and writes the allocated result, with `share` of the time of an
/// elementwise kernel for each element of operand `counted`.
Work element_passes(std::size_t inputs, std::size_t counted, double share) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    KernelWork kernel = one_pass(inputs)(launch, op, allocated);
    if (counted < op.operands.size()) kernel.single_elements = share * elements_of(op.operands[counted]);
    return kernel;
  };
}

/// Reads all operands and writes the allocated result. The address of each element is calculated from its
/// place in all dimensions.
KernelWork concatenation(const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
  constexpr double kShare = 1.35;  // of the time of an elementwise kernel; on an H100
  KernelWork kernel = one_pass(op.operands.size())(launch, op, allocated);
  for (const OperandShape& operand : op.operands) kernel.single_elements += kShare * elements_of(operand);
  kernel.has_unknown_launch = true;
  return kernel;
}

/// A sum, mean or maximum of the first operand. The result has half of its elements at most; what else is
/// allocated is a workspace, of which little is used (Reduce.cuh).
KernelWork reduction(const KernelLaunch&, const OpCall& op, Bytes allocated) {
  constexpr double kBandwidthShare = 0.85;  // of kernels that read only; on an H100
  const Bytes read = bytes_of(op, 0);
  const auto bytes = static_cast<double>(read + std::min(allocated, read / 2));
  return {.work = {.bytes = static_cast<Bytes>(bytes / kBandwidthShare)}, .has_unknown_launch = true};
}

/// cuDNN's batch norm: one block for each channel goes through it `passes` times.
Work by_channels(std::size_t inputs, Bytes passes) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes) {
    KernelWork kernel = one_pass(inputs)(launch, op, bytes_of(op, 0));
    kernel.bytes_read_again = (passes - 1) * reading(inputs)(launch, op, 0).work.bytes;
    kernel.bytes_per_block = static_cast<double>(kernel.work.bytes);
    kernel.has_unknown_launch = true;
    if (!op.operands.empty() && op.operands.front().sizes.size() > 1)
      kernel.most_multiprocessors = static_cast<double>(op.operands.front().sizes[1]);
    return kernel;
  };
}

/// Threads that go through the targets together; each takes `loads` dependent loads for one.
Work over_targets(std::size_t target, double loads) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes) {
    KernelWork kernel;
    if (target < op.operands.size())
      kernel.dependent_loads =
          std::ceil(elements_of(op.operands[target]) / (launch.blocks() * launch.threads_per_block())) *
          loads;
    return kernel;
  };
}

/// Wraps `work` of a softmax along a dimension that is not the last one: a thread goes through the dimension
/// in each of `passes`, and has two loads on the way. If few threads have a long way, they take most of the
/// time.
Work along_dimension(double passes, Work work) {
  return [passes, work = std::move(work)](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    constexpr double kLoadsOnTheWay = 2;  // on an H100
    KernelWork kernel = work(launch, op, allocated);
    if (!op.operands.empty())
      kernel.dependent_loads = passes * elements_of(op.operands.front()) /
                               (launch.blocks() * launch.threads_per_block()) / kLoadsOnTheWay;
    return kernel;
  };
}

/// Wraps `work` on rows: before a block writes, it waits for its row, and its threads for each other's sums.
/// An RMS norm has one sum; a layer norm has moments, which are exchanged in steps. Waits are those of an
/// H100.
Work with_waits(double of_layer_norm, Work work) {
  constexpr double kOfRmsNorm = 1;
  return
      [of_layer_norm, work = std::move(work)](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
        const bool is_rms_norm = op.name.find("rms_norm") != std::string_view::npos;
        KernelWork kernel = work(launch, op, allocated);
        kernel.waits_of_block = is_rms_norm ? kOfRmsNorm : of_layer_norm;
        return kernel;
      };
}

/// Sums of the columns of (gradient, input). Few blocks go through many rows, and a thread has loaded some
/// elements ahead. Numbers are those of an H100.
KernelWork sums_of_columns(const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
  constexpr double kShare = 0.7, kElementsOnTheWay = 4.5;
  KernelWork kernel = at_least(kShare, reading(2))(launch, op, allocated);
  kernel.single_elements_on_the_way = kShare * kElementsOnTheWay;
  kernel.has_unknown_launch = true;
  return kernel;
}

/// Convolution of each channel of an image by a filter of its own. A product for an element of the result
/// takes `kShare` of the time of an elementwise kernel, with filters of 3 x 3 on an H100.
KernelWork depthwise_forward(const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
  constexpr double kShare = 0.25;
  KernelWork kernel = one_pass(1)(launch, op, allocated);
  kernel.has_unknown_launch = true;
  if (op.operands.size() < 2 || op.operands[0].element_bytes == 0) return kernel;
  const double results = static_cast<double>(allocated) / static_cast<double>(op.operands[0].element_bytes);
  kernel.single_elements = kShare * results * filter_elements(op.operands[1]);
  return kernel;
}

/// Its gradients, from (gradient, image, weight): of the image, or of the weight. `share` is as above, for
/// each element of operand `counted`.
Work depthwise_backward(std::size_t counted, double share) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes) {
    KernelWork kernel = reading(2)(launch, op, 0);
    kernel.has_unknown_launch = true;
    if (op.operands.size() < 3) return kernel;
    kernel.single_elements = share * filter_elements(op.operands[2]) * elements_of(op.operands[counted]);
    return kernel;
  };
}

const std::map<std::string_view, Work, std::less<>>& kernels_by_name() {
  static const std::map<std::string_view, Work, std::less<>> table = {
      // A row stays in registers or in shared memory, or else is read three times: for its maximum, for the
      // sum, and for the result. Shares of the time of an elementwise kernel are those of an H100
      // (traces/recorded/h100/kernels.csv).
      {"softmax_warp_forward", at_least(0.8, one_pass(1))},
      {"cunn_SoftMaxForwardReg", at_least(1.1, one_pass(1))},
      {"cunn_SoftMaxForwardSmem", at_least(0.8, one_pass(1))},
      {"cunn_SoftMaxForward", at_least(0.8, row_passes(1, 1, 2))},
      {"cunn_SoftMaxForwardGmem", at_least(0.8, row_passes(1, 1, 2))},
      // (gradient, result): the gradient is read for its sum and for the result.
      {"softmax_warp_backward", gradient_of_softmax(0)},
      {"cunn_SoftMaxBackwardSmem", gradient_of_softmax(0)},
      {"cunn_SoftMaxBackward", gradient_of_softmax(1)},
      // Forward has three passes: the maximum, the sum, and the result; backward has two: the sum, and the
      // result.
      {"cunn_SpatialSoftMaxForward", along_dimension(3, row_passes(1, 1, 2))},
      {"cunn_SpatialSoftMaxBackward", along_dimension(2, gradient_of_softmax(1))},
      {"nll_loss_forward_reduce_cuda_kernel_2d", over_targets(1, 2)},
      {"nll_loss_backward_reduce_cuda_kernel_2d", over_targets(2, 1)},
      {"nll_loss2d_forward_kernel", over_targets(1, 2)},
      {"nll_loss2d_forward_no_reduce_kernel", over_targets(1, 2)},
      {"nll_loss2d_backward_kernel", over_targets(2, 1)},
      {"nll_loss2d_backward_no_reduce_kernel", over_targets(2, 1)},
      // Moments, then the result.
      {"vectorized_layer_norm_kernel", with_waits(3, at_least(0.75, row_passes(1, 1, 1)))},
      {"RowwiseMomentsCUDAKernel", at_least(1.2, reading(1))},
      {"LayerNormForwardCUDAKernel", one_pass(1)},
      // (gradient, input): both for their sums and for the result.
      {"layer_norm_grad_input_kernel", gradient_of_normalized},
      {"layer_norm_grad_input_kernel_vectorized", with_waits(2, at_least(1.05, gradient_of_normalized))},
      {"ComputeInternalGradientsCUDAKernel", reading_singly(2)},
      {"GammaBetaBackwardSimpleCUDAKernel", reading(2)},
      {"GammaBetaBackwardCUDAKernel", reading(2)},
      {"GammaBetaBackwardCUDAKernel_32x32", reading(2)},
      {"GammaBetaBackwardCUDAKernelTemplate", sums_of_columns},
      // Moments, then the result; one block for each channel.
      {"batch_norm_collect_statistics_kernel", of_batch_norm(reading_singly(1))},
      {"batch_norm_transform_input_kernel", element_passes(1, 0, 1)},
      // (gradient, input): both for their sums and for the result.
      {"batch_norm_backward_kernel", of_batch_norm(element_passes(2, 0, 2))},
      {"cudnnBatchNormalizationForwardTrainingEx", by_channels(1, 2)},
      {"cudnnBatchNormalizationBackwardEx", by_channels(2, 3)},
      // An output looks at each input below it, and in backward, an input at each output above it.
      {"max_pool_forward_nchw", element_passes(1, 0, 1)},
      {"max_pool_backward_nchw", element_passes(3, 1, 3)},
      {"conv_depthwise2d_forward_kernel", depthwise_forward},
      {"conv_depthwise2d_forward_kernel_generic", depthwise_forward},
      {"conv_depthwise2d_backward_kernel", depthwise_backward(1, 0.7)},
      {"conv_depthwise2d_grad_weight_kernel", depthwise_backward(0, 0.5)},
      {"reduce_kernel", reduction},
      {"CatArrayBatchedCopy", concatenation},
      {"multi_tensor_apply_kernel", chunks_of_lists}};
  return table;
}

/// Returns true for an elementwise kernel that calculates the address of each element, as it does for
/// operands that are broadcast, strided or of several dtypes (CUDALoops.cuh).
bool is_not_vectorized(std::string_view name) {
  return name == "elementwise_kernel" || name == "unrolled_elementwise_kernel" ||
         name == "index_elementwise_kernel" || name == "elementwise_kernel_with_index";
}

/// Returns the number of elements of the result: of the allocated bytes, or of the largest operand of an
/// operator that allocates none. Operands may be broadcast or be tables of which some rows are read.
double result_elements(const OpCall& op, Bytes allocated) {
  double largest = 0, element_bytes = 1;
  for (const OperandShape& operand : op.operands) {
    const double elements = elements_of(operand);
    element_bytes = std::max(element_bytes, static_cast<double>(operand.element_bytes));
    largest = std::max(largest, elements);
  }
  const double of_allocated = static_cast<double>(allocated) / element_bytes;
  return allocated > 0 && gathers(op.name) ? of_allocated : std::max(largest, of_allocated);
}

/// Returns the time that an elementwise kernel takes for an element with so many operands, the result among
/// them, as a share of the time with three. Its address costs as much as an operand. On an H100.
double share_with(double operands) {
  constexpr double kOperands = 3, kAddress = 1;
  return (kAddress + operands) / (kAddress + kOperands);
}

/// Returns that share for an operator. Neighbours of an operand that is transposed by a copy are not
/// adjacent: each is in another sector of the L2 cache.
double share_of_elements(std::string_view kernel, const OpCall& op, Bytes allocated) {
  constexpr double kTransposedShare = 2.5, kSectorBytes = 32;
  if (kernel == "unrolled_elementwise_kernel") return 1;  // converts each operand by its type
  double operands = allocated > 0 || (op.name.ends_with('_') && !is_overwriting(op.name)) ? 1 : 0;
  for (const OperandShape& operand : op.operands) operands += operand.sizes.empty() ? 0 : 1;
  const double share = share_with(operands);
  if (op.name != "aten::copy_" || op.operands.size() < 2) return share;
  const OperandShape &to = op.operands[0], &from = op.operands[1];
  if (to.is_transposed() == from.is_transposed()) return share;
  const auto step = static_cast<double>(std::max(to.step_bytes, from.step_bytes));
  return std::max(share, kTransposedShare * std::min(1.0, step / kSectorBytes));
}

/// Returns the work of the kernel of a group norm that computes its result, or the gradient of its input,
/// from the moments of the groups (group_norm_kernel.cu). Others of its kernels have an element for each
/// channel of a sample; a thread has at most 4 elements.
std::optional<KernelWork> group_norm_result(const KernelLaunch& launch, const OpCall& op) {
  constexpr double kElementsOfThread = 4;
  constexpr double kOperandsForward = 4, kOperandsBackward = 5;  // factors of groups and channels too
  const bool is_backward = op.name == "aten::native_group_norm_backward";
  if (!is_backward && op.name != "aten::native_group_norm") return std::nullopt;
  if (op.operands.empty() || !is_not_vectorized(base_name(launch.name))) return std::nullopt;
  const double elements = elements_of(op.operands.front());
  if (launch.blocks() * launch.threads_per_block() * kElementsOfThread < elements) return std::nullopt;
  KernelWork kernel = reading(is_backward ? 2 : 1)(launch, op, 0);
  kernel.work.bytes += bytes_of(op, 0);
  kernel.single_elements = elements * share_with(is_backward ? kOperandsBackward : kOperandsForward);
  return kernel;
}

/// Kernels that go through the gradient of an embedding's output element by element: sums of parts of it, and
/// their sums (EmbeddingBackwardKernel.cuh).
constexpr double kEmbeddingBackwardKernels = 2;

/// Threads of other kernels have several loads on the way, so their number does not limit the bandwidth.
KernelWork first_of_operator(const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
  KernelWork kernel{.work = work_of(op, allocated), .has_unknown_launch = true};
  kernel.bytes_read_again = read_again(op);
  kernel.bytes_per_block = static_cast<double>(kernel.work.bytes);
  if (const auto name = base_name(launch.name); is_not_vectorized(name))
    kernel.single_elements = share_of_elements(name, op, allocated) * result_elements(op, allocated);
  if (op.name == "aten::embedding_dense_backward" && !op.operands.empty())
    kernel.single_elements = kEmbeddingBackwardKernels * elements_of(op.operands.front());
  return kernel;
}

}  // namespace

KernelWork work_of_kernel(const KernelLaunch& launch, const OpCall& op, Bytes allocated, bool first) {
  const auto found = kernels_by_name().find(base_name(launch.name));
  if (found != kernels_by_name().end()) return found->second(launch, op, allocated);
  if (first) return first_of_operator(launch, op, allocated);
  return group_norm_result(launch, op).value_or(KernelWork{});
}

}  // namespace offprof

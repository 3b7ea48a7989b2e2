#include "engine/devices/virtual_gpu/work/kernel_work.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "engine/devices/virtual_gpu/work/image_kernels.h"
#include "engine/devices/virtual_gpu/work/kernel_passes.h"

namespace offprof {
namespace {

/// The same, one row a block. Reads the first `repeated` operands `times` more.
WorkRule row_passes(std::size_t inputs, std::size_t repeated, Bytes times) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    KernelWork kernel = one_pass(inputs)(launch, op, allocated);
    for (std::size_t i = 0; i < repeated; ++i) kernel.bytes_read_again += times * bytes_of(op, i);
    kernel.bytes_per_block = static_cast<double>(kernel.work.bytes) / launch.blocks();
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
    const double elements = op.operands[i].elements();
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
WorkRule gradient_of_softmax(Bytes times) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    return row_passes(2, 1, times)(launch, op, std::min(allocated, bytes_of(op, 1)));
  };
}

/// Reads (gradient, input) twice, one row a block, and writes the gradient of the input. The operator has
/// allocated the gradients of weight and bias too.
KernelWork gradient_of_normalized(const KernelLaunch& launch, const OpCall& op, Bytes) {
  return row_passes(2, 2, 1)(launch, op, bytes_of(op, 1));
}

/// Reads all operands and writes the allocated result. The address of each element is calculated from its
/// place in all dimensions.
KernelWork concatenation(const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
  constexpr double kShare = 1.35;  // of the time of an elementwise kernel; on an H100
  KernelWork kernel = one_pass(op.operands.size())(launch, op, allocated);
  for (const OperandShape& operand : op.operands) kernel.single_elements += kShare * operand.elements();
  kernel.has_unknown_launch = true;
  return kernel;
}

/// A sum, mean or maximum of the first operand. The result has half of its elements at most; what else is
/// allocated is a workspace, of which little is used. Several blocks may share an element of the result: the
/// last one adds the sums of all of them (Reduce.cuh). Figures are those of an H100.
KernelWork reduction(const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
  constexpr double kBandwidthShare = 0.85;  // of kernels that read only
  constexpr double kElementsOnTheWay = 20, kShareOfCachedLoad = 0.4, kLoadsOfExchange = 3;
  const double sharing = launch.grid[1];
  const Bytes read = bytes_of(op, 0), written = sharing > 1 ? 0 : std::min(allocated, read / 2);
  KernelWork kernel{
      .work = {.bytes = static_cast<Bytes>(static_cast<double>(read + written) / kBandwidthShare)}};
  if (op.operands.empty()) return kernel;
  kernel.bytes_on_the_way = kElementsOnTheWay * static_cast<double>(op.operands.front().element_bytes);
  if (sharing > 1) {
    const double adding = launch.block[1] > 1 ? launch.block[1] : launch.block[0];
    kernel.closing_loads = kLoadsOfExchange + kShareOfCachedLoad * sharing / adding;
  } else {
    kernel.waits_of_block = 1;
  }
  return kernel;
}

/// Threads that go through the targets together; each takes `loads` dependent loads for one.
WorkRule over_targets(std::size_t target, double loads) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes) {
    KernelWork kernel;
    if (target < op.operands.size())
      kernel.dependent_loads =
          std::ceil(op.operands[target].elements() / (launch.blocks() * launch.threads_per_block())) * loads;
    return kernel;
  };
}

/// Wraps `work` of a softmax along a dimension that is not the last one: a thread goes through the dimension
/// in each of `passes`, and has two loads on the way. If few threads have a long way, they take most of the
/// time.
WorkRule along_dimension(double passes, WorkRule work) {
  return [passes, work = std::move(work)](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    constexpr double kLoadsOnTheWay = 2;  // on an H100
    KernelWork kernel = work(launch, op, allocated);
    if (!op.operands.empty())
      kernel.dependent_loads = passes * op.operands.front().elements() /
                               (launch.blocks() * launch.threads_per_block()) / kLoadsOnTheWay;
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

WorkByName other_kernels() {
  return {
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
      {"reduce_kernel", reduction},
      {"CatArrayBatchedCopy", concatenation},
      {"multi_tensor_apply_kernel", chunks_of_lists}};
}

const WorkByName& kernels_by_name() {
  static const WorkByName table = [] {
    WorkByName all = other_kernels();
    all.merge(image_kernels());
    return all;
  }();
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
    const double elements = operand.elements();
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
  const double elements = op.operands.front().elements();
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
  kernel.bytes_per_block = static_cast<double>(kernel.work.bytes);
  if (const auto name = base_name(launch.name); is_not_vectorized(name))
    kernel.single_elements = share_of_elements(name, op, allocated) * result_elements(op, allocated);
  if (const double share = single_channels_share(op); share > 0)
    kernel.single_elements = share * op.operands.front().elements();
  if (op.name == "aten::embedding_dense_backward" && !op.operands.empty())
    kernel.single_elements = kEmbeddingBackwardKernels * op.operands.front().elements();
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

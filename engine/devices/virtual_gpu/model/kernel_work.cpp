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

double rows_of(const OpCall& op, std::size_t operand) {
  if (operand >= op.operands.size() || op.operands[operand].sizes.empty()) return 0;
  return static_cast<double>(op.operands[operand].sizes.front());
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

/// One block whose threads go through the targets together; each takes `loads` dependent loads for one.
Work targets_by_one_block(std::size_t target, double loads) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes) {
    KernelWork kernel;
    kernel.dependent_loads = std::ceil(rows_of(op, target) / launch.threads_per_block()) * loads;
    return kernel;
  };
}

const std::map<std::string_view, Work, std::less<>>& kernels_by_name() {
  static const std::map<std::string_view, Work, std::less<>> table = {
      // A row stays in registers or in shared memory, or else is read three times: for its maximum, for the
      // sum,
      // and for the result.
      {"softmax_warp_forward", one_pass(1)},
      {"cunn_SoftMaxForwardReg", one_pass(1)},
      {"cunn_SoftMaxForwardSmem", one_pass(1)},
      {"cunn_SoftMaxForward", row_passes(1, 1, 2)},
      {"cunn_SoftMaxForwardGmem", row_passes(1, 1, 2)},
      // (gradient, result): the gradient is read for its sum and for the result.
      {"softmax_warp_backward", gradient_of_softmax(0)},
      {"cunn_SoftMaxBackwardSmem", gradient_of_softmax(0)},
      {"cunn_SoftMaxBackward", gradient_of_softmax(1)},
      {"nll_loss_forward_reduce_cuda_kernel_2d", targets_by_one_block(1, 2)},
      {"nll_loss_backward_reduce_cuda_kernel_2d", targets_by_one_block(2, 1)},
      // Moments, then the result.
      {"vectorized_layer_norm_kernel", row_passes(1, 1, 1)},
      {"vectorized_rms_norm_kernel", row_passes(1, 1, 1)},
      {"RowwiseMomentsCUDAKernel", reading_singly(1)},
      {"LayerNormForwardCUDAKernel", one_pass(1)},
      // (gradient, input): both for their sums and for the result.
      {"layer_norm_grad_input_kernel", gradient_of_normalized},
      {"layer_norm_grad_input_kernel_vectorized", gradient_of_normalized},
      {"ComputeInternalGradientsCUDAKernel", reading_singly(2)},
      {"GammaBetaBackwardSimpleCUDAKernel", reading(2)},
      {"GammaBetaBackwardCUDAKernel", reading(2)},
      {"GammaBetaBackwardCUDAKernel_32x32", reading(2)},
      {"GammaBetaBackwardCUDAKernelTemplate", reading(2)},
      {"cuComputePartGradGammaBeta", reading(2)}};
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

/// Returns the work of the kernel of a group norm that computes its result, or the gradient of its input,
/// from the moments of the groups (group_norm_kernel.cu). Others of its kernels have an element for each
/// channel of a sample; a thread has at most 4 elements.
std::optional<KernelWork> group_norm_result(const KernelLaunch& launch, const OpCall& op) {
  constexpr double kElementsOfThread = 4;
  const bool is_backward = op.name == "aten::native_group_norm_backward";
  if (!is_backward && op.name != "aten::native_group_norm") return std::nullopt;
  if (op.operands.empty() || !is_not_vectorized(base_name(launch.name))) return std::nullopt;
  const double elements = elements_of(op.operands.front());
  if (launch.blocks() * launch.threads_per_block() * kElementsOfThread < elements) return std::nullopt;
  KernelWork kernel = reading(is_backward ? 2 : 1)(launch, op, 0);
  kernel.work.bytes += bytes_of(op, 0);
  kernel.single_elements = elements;
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
  if (is_not_vectorized(base_name(launch.name))) kernel.single_elements = result_elements(op, allocated);
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

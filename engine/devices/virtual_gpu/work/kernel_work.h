#pragma once

#include <cstdint>

#include "engine/devices/virtual_gpu/work/kernel_launch.h"
#include "engine/devices/virtual_gpu/work/op_work.h"
#include "traces/base/units.h"

namespace offprof {

/// Work of one kernel on a device.
struct KernelWork {
  OpWork work{};  ///< its operations, and the bytes that it reads and writes, each once
  /// Bytes that its blocks read once more, and the memory that one block uses in between. The second read
  /// costs no traffic if the L2 cache holds what the resident blocks use.
  Bytes bytes_read_again = 0;
  double bytes_per_block = 0;
  double single_elements = 0;       ///< elements of a result that a thread loads and stores one by one
  double most_multiprocessors = 0;  ///< that it can keep busy; 0: all
  /// which a thread has loaded and not stored yet; 0: enough to keep the multiprocessors busy
  double single_elements_on_the_way = 0;
  /// of the bandwidth of a multiprocessor that has one block at a time; less if it has more of them
  double loss_of_single_block = 0;
  double dependent_loads = 0;    ///< loads that the slowest thread makes one after the other
  double bytes_on_the_way = 16;  ///< that a thread has asked for
  double closing_loads = 0;      ///< the same, once all others are done: the sums of all blocks are added
  /// Waits of a block, one after the other, each as long as a load. The memory has nothing to do meanwhile,
  /// since blocks that begin together wait together.
  double waits_of_block = 0;
  /// the launch sizes say nothing about the number of threads: the kernels of a library, or of a whole
  /// operator
  bool has_unknown_launch = false;
};

/// Returns the work of a kernel of the operator `op`. `allocated` is as in work_of. `first` is true for the
/// operator's first kernel.
///
/// Kernels of PyTorch whose passes over memory were read in their sources (aten/src/ATen/native/cuda, version
/// 2.11) have work of their own: softmax (SoftMax.cu, PersistentSoftmax.cuh), layer norm
/// (layer_norm_kernel.cu), group norm (group_norm_kernel.cu), batch norm (Normalization.cuh), max pooling
/// (DilatedMaxPool2d.cu), convolutions of single channels (DepthwiseConv2d.cu), the negative log-likelihood
/// loss (Loss.cu, NLLLoss2d.cu), operators on lists (MultiTensorApply.cuh). For any other kernel, the work of
/// the operator belongs to its first launch, and the later ones have none.
KernelWork work_of_kernel(const KernelLaunch& launch, const OpCall& op, Bytes allocated, bool first);

}  // namespace offprof

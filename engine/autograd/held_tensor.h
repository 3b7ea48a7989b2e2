#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>

#include "engine/scheduler/command.h"

namespace offprof {

/// A tensor without autograd history: a whole tensor, or all of it but its storage.
using Shell = c10::intrusive_ptr<c10::TensorImpl>;

/// Returns the tensor without its history, sharing storage and version counter: holding the history would be
/// a reference cycle.
Shell shell_of(const at::Tensor& value);

/// Returns true if the tensor's elements fill consecutive memory without overlap.
inline bool is_dense(const at::Tensor& value) {
  return value.is_non_overlapping_and_dense();
}

/// A tensor that autograd saved.
struct HeldTensor {
  /// `is_variable`: holds the tensor itself, as autograd holds a leaf without hooks. If the program gives it
  /// other data before backward, it is unpacked with them.
  HeldTensor(const at::Tensor& value, bool is_variable);

  Shell shell;  ///< the whole tensor if it is kept, all of it but its storage if it is offloaded
  std::uint32_t version = 0;
  c10::VariableVersion counter;  ///< of `version`; outlives the shell
  CopyId copy = -1;              ///< holds its values; -1: the shell does
};

/// Throws autograd's own error if the tensor was modified in place since it was saved.
void check_unmodified(const HeldTensor& held);

/// Returns the tensor with the values in `storage`. `is_packed_densely`: the storage has only the tensor's
/// own elements, as copied densely; otherwise it is like the one that the tensor was saved with.
at::Tensor with_storage(const Shell& shell, const c10::Storage& storage, bool is_packed_densely);

}  // namespace offprof

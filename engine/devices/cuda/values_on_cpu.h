#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/Storage.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstddef>

namespace offprof {

/// Runs operators on the CPU as plain functions: without autograd, autocast, modes of Python and observers.
class OnlyTheCpu {
  at::DisableRecordFunctionGuard unobserved_;
  c10::impl::ForceDispatchKeyGuard plain_{
      c10::DispatchKeySet(c10::DispatchKey::BackendSelect),
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset | c10::python_ks};
};

/// Returns true for a tensor whose elements are in memory as its strides say, rather than a wrapper of
/// others.
bool is_plain(const at::Tensor& tensor);

/// Returns new memory on the CPU, and memory with the same contents. No operator runs.
c10::Storage new_storage(std::size_t bytes);
c10::Storage copy_of(const c10::Storage& storage);

/// Returns the tensor that has the same place in `storage` as `tensor` has in its own; undefined: it would
/// reach beyond its end. Call it within OnlyTheCpu.
at::Tensor view_like(const c10::Storage& storage, const at::Tensor& tensor);

}  // namespace offprof

#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

namespace offprof {

/// Tensor of a class that wraps a plain tensor with the data, as a DTensor wraps the part of its rank.
struct WrappedTensor {
  at::Tensor inner;  ///< the tensor inside
  /// Wraps a tensor with the same contents in the same way. Holds no tensor.
  std::function<at::Tensor(const at::Tensor&)> wrap;
  /// The tensor inside with the version counter of the wrapper, whose operators count there. Set by `unwrap`.
  at::Tensor plain{};
};

/// Sets the function that takes wrapped tensors apart. It returns nullopt for a tensor that it does not know,
/// and may be called on any thread. Call this once, before the first step.
void set_unwrapper(std::function<std::optional<WrappedTensor>(const at::Tensor&)> unwrapper);

/// Takes apart a tensor that an operator saves, and so is about to read; nullopt: it is a plain tensor, or
/// one that the unwrapper does not know.
std::optional<WrappedTensor> unwrap(const at::Tensor& tensor);

}  // namespace offprof

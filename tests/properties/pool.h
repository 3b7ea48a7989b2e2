#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace offprof {

/// Leaves of a random program: three leaves that get gradients, and a tensor that gets none.
struct Leaves {
  explicit Leaves(c10::Device device);

  /// Returns all leaves, the constant first.
  std::vector<at::Tensor> all() const;

  std::vector<at::Tensor> trained;
  at::Tensor constant;
};

/// Tensors available to a random program: the leaves, and the tensors that it has created and not dropped.
class Pool {
 public:
  explicit Pool(const Leaves& leaves) : tensors_(leaves.all()), leaves_(tensors_.size()) {}

  /// Returns a tensor, counted from the newest, modulo the size of the pool.
  at::Tensor& at(std::uint8_t operand) { return tensors_[tensors_.size() - 1 - operand % tensors_.size()]; }
  /// Returns a leaf that gets a gradient.
  const at::Tensor& leaf(std::uint8_t operand) const { return tensors_[1 + operand % (leaves_ - 1)]; }
  /// Adds a tensor, or only a part of it if it is too large.
  void add(const at::Tensor& tensor);
  /// Drops a tensor unless it is a leaf.
  void drop(std::uint8_t operand);
  void keep_leaves_only() { tensors_.resize(leaves_), losses_.clear(); }

  void add_loss(at::Tensor loss) { losses_.push_back(std::move(loss)); }
  /// Returns the sum of the losses and the newest tensor, to start backward from; undefined if none needs a
  /// gradient.
  at::Tensor last_loss() const;

 private:
  std::vector<at::Tensor> tensors_;
  std::size_t leaves_;
  std::vector<at::Tensor> losses_;
};

}  // namespace offprof

#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace offprof {

/// What a random program starts from: three leaves that get gradients, and a tensor that gets none.
struct Leaves {
  explicit Leaves(c10::Device device);

  /// The constant first.
  std::vector<at::Tensor> all() const;

  std::vector<at::Tensor> trained;
  at::Tensor constant;
};

/// The tensors that a random program has at hand: the leaves, and what it has made and not dropped.
class Pool {
 public:
  explicit Pool(const Leaves& leaves) : tensors_(leaves.all()), leaves_(tensors_.size()) {}

  /// Counted from the newest, modulo how many there are.
  at::Tensor& at(std::uint8_t operand) { return tensors_[tensors_.size() - 1 - operand % tensors_.size()]; }
  /// One that gets a gradient.
  const at::Tensor& leaf(std::uint8_t operand) const { return tensors_[1 + operand % (leaves_ - 1)]; }
  /// Of a tensor that is too large only a part.
  void add(const at::Tensor& tensor);
  /// A leaf stays.
  void drop(std::uint8_t operand);
  void keep_leaves_only() { tensors_.resize(leaves_), losses_.clear(); }

  void add_loss(at::Tensor loss) { losses_.push_back(std::move(loss)); }
  /// What is left to start backward from: the losses and the newest tensor; undefined: nothing that needs it.
  at::Tensor last_loss() const;

 private:
  std::vector<at::Tensor> tensors_;
  std::size_t leaves_;
  std::vector<at::Tensor> losses_;
};

}  // namespace offprof

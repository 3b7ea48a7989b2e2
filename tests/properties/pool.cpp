#include "tests/properties/pool.h"

#include "tests/properties/operations.h"

namespace offprof {
namespace {

/// Maximum number of elements: enough for strides and stashes to matter, and fast.
constexpr std::int64_t kMostNumbers = 1024;

at::Tensor leaf(c10::Device device, at::IntArrayRef sizes) {
  return at::randn(sizes, at::TensorOptions(device).dtype(at::kDouble)).set_requires_grad(true);
}

}  // namespace

Leaves::Leaves(c10::Device device)
    : trained({leaf(device, {8}), leaf(device, {8, 6}), leaf(device, {6, 8})}),
      constant(at::randn({2, 3, 4}, at::TensorOptions(device).dtype(at::kDouble))) {}

std::vector<at::Tensor> Leaves::all() const {
  std::vector<at::Tensor> tensors = trained;
  tensors.insert(tensors.begin(), constant);
  return tensors;
}

void Pool::add(const at::Tensor& tensor) {
  const bool is_large = tensor.numel() > kMostNumbers;
  tensors_.push_back(is_large ? tensor.reshape({tensor.numel()}).narrow(0, 0, kMostNumbers) : tensor);
}

void Pool::drop(std::uint8_t operand) {
  const std::size_t index = tensors_.size() - 1 - operand % tensors_.size();
  if (index >= leaves_) tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(index));
}

at::Tensor Pool::last_loss() const {
  at::Tensor loss = total(tensors_.back());
  for (const at::Tensor& other : losses_) loss = loss + other;
  return loss.requires_grad() ? loss : at::Tensor();
}

}  // namespace offprof

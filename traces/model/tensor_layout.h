#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace offprof {

/// Layout of a tensor's elements in its storage.
struct TensorLayout {
  std::string dtype;  ///< `float32`, `int64`, `bool`, ...
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  ///< in elements

  bool operator==(const TensorLayout&) const = default;
};

/// Returns true if the elements fill consecutive memory without overlap, in some order of the dimensions.
bool is_dense(const TensorLayout& layout);
/// Returns the number of elements; 0 if it does not fit into 64 bits.
std::int64_t elements_of(const TensorLayout& layout);

/// Layout that its copies share, because most tensors of a step have the same layout as others. Compared by
/// value.
class SharedLayout {
 public:
  SharedLayout() : layout_(nothing()) {}
  SharedLayout(TensorLayout layout)  // NOLINT(google-explicit-constructor): it is that layout, shared
      : layout_(std::make_shared<const TensorLayout>(std::move(layout))) {}

  const TensorLayout& operator*() const { return *layout_; }
  const TensorLayout* operator->() const { return layout_.get(); }
  bool operator==(const SharedLayout& other) const { return layout_ == other.layout_ || **this == *other; }

 private:
  static const std::shared_ptr<const TensorLayout>& nothing() {
    static const auto layout = std::make_shared<const TensorLayout>();
    return layout;
  }

  std::shared_ptr<const TensorLayout> layout_;
};

}  // namespace offprof

// Property test of random tensors that are written and read back.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/tensors/offloaded_tensor.h"
#include "tests/support/folder_test.h"
#include "tests/support/random_tensors.h"

namespace offprof {
namespace {

/// Expands the tensor by a new dimension of size 3, sharing memory.
at::Tensor repeated(const at::Tensor& tensor, std::int64_t dim) {
  auto sizes = tensor.sizes().vec();
  sizes.insert(sizes.begin() + dim, 3);
  return tensor.unsqueeze(dim).expand(sizes);
}

/// Returns a random view: transposed, sliced, strided, selected or expanded.
at::Tensor random_view(at::Tensor tensor) {
  const int steps = *rc::gen::inRange(0, 4);
  for (int step = 0; step < steps && tensor.dim() > 0; ++step) {
    const auto dim = *rc::gen::inRange<std::int64_t>(0, tensor.dim());
    const auto size = tensor.size(dim);
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        tensor = tensor.transpose(0, dim);
        break;
      case 1:
        tensor = tensor.slice(dim, *rc::gen::inRange<std::int64_t>(0, size + 1));
        break;
      case 2:
        tensor = tensor.slice(dim, 0, size, *rc::gen::inRange<std::int64_t>(1, 4));
        break;
      case 3:
        tensor = repeated(tensor, dim);
        break;
      default:
        if (size > 0) tensor = tensor.select(dim, *rc::gen::inRange<std::int64_t>(0, size));
    }
  }
  return tensor;
}

at::Tensor random_tensor() {
  const auto dtype = *rc::gen::elementOf(plain_dtypes());
  const auto sizes = *rc::gen::resize(
      4, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 6)));
  return random_view(random_bits(sizes, dtype, *rc::gen::arbitrary<std::uint64_t>()));
}

/// Creates a folder outside of GoogleTest, because property tests have no fixtures.
class Folder : public FolderTest {
 public:
  const std::filesystem::path& path() const { return path_; }

 private:
  void TestBody() override {}
};

RC_GTEST_PROP(OffloadedTensorProperty, PreservesAnyTensorBitByBit, ()) {
  const Folder folder;
  const at::Tensor tensor = random_tensor();
  RC_TAG(std::string(dtype_name(tensor.scalar_type())));
  OffloadedTensor kept(tensor, *rc::gen::nonEmpty(rc::gen::resize(40, rc::gen::string<std::string>())),
                       OffloadFolder::open(folder.path()));
  RC_ASSERT(same_bits(kept.load(), tensor));
  const at::Tensor other = random_tensor();
  kept.update_values(other, false, false);
  RC_ASSERT(same_bits(kept.load(), other));
  RC_ASSERT(kept.sizes() == other.sizes());
}

}  // namespace
}  // namespace offprof

// Tests with checkpoints saved by PyTorch itself: see test_checkpoints/make.py.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "engine/tensors/files/checkpoint.h"
#include "engine/tensors/files/readable_file.h"
#include "engine/tensors/tensor_store.h"
#include "engine/torch/dtype_name.h"
#include "tests/support/random_tensors.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;

std::string checkpoint(const std::string& name) {
  return std::string(OFFPROF_TEST_CHECKPOINTS "/") + name;
}

std::string refusal(const std::string& name) {
  return message_of<Error>([&] { TensorStore store(checkpoint(name)); });
}

TEST(PythonCheckpoint, ReadsAStateDict) {
  const TensorStore store(checkpoint("state_dict.pt"));
  EXPECT_EQ(store.tensors().size(), 7U);
  EXPECT_TRUE(store.get("0.weight").equal(at::arange(12, at::kFloat).view({4, 3})));
  EXPECT_TRUE(store.get("1.num_batches_tracked").equal(at::scalar_tensor(1, at::kLong)));
}

TEST(PythonCheckpoint, ReadsATrainingState) {
  const TensorStore store(checkpoint("training.pt"));
  for (const char* name : {"model.0.weight", "optimizer.state.0.exp_avg", "optimizer.state.0.step", "bias"})
    EXPECT_THAT(store.tensors(), Contains(Key(name)));
  EXPECT_TRUE(store.get("bias").equal(store.get("model.0.bias")));
  EXPECT_FALSE(store.get("bias").requires_grad());
}

TEST(PythonCheckpoint, ReadsEveryDtypeAsAView) {
  const TensorStore store(checkpoint("views.pt"));
  EXPECT_EQ(store.tensors().size(), 19U);
  const at::Tensor pattern = at::arange(12, at::kFloat).remainder(2).view({4, 3});
  for (const auto& [name, info] : store.tensors()) {
    const at::Tensor view = store.get(name);
    EXPECT_EQ(dtype_name(view.scalar_type()), name);
    EXPECT_EQ(view.strides(), at::IntArrayRef({1, 3}));
    EXPECT_TRUE(same_bits(view, pattern.to(view.scalar_type()).t().slice(0, 1))) << name;
  }
}

TEST(PythonCheckpoint, RejectsAnythingButADictionaryOfPlainTensors) {
  EXPECT_THAT(refusal("module.pt"), HasSubstr("has a 'torch.nn.modules.container.Sequential'"));
  EXPECT_THAT(refusal("conjugate.pt"), HasSubstr("conjugate"));
  EXPECT_THAT(refusal("sparse.pt"), HasSubstr("sparse"));
  EXPECT_THAT(refusal("quantised.pt"), HasSubstr("quantised"));
  EXPECT_THAT(refusal("old.pt"), HasSubstr("in the old format"));
}

/// A damaged byte of a name, of a number or of padding leaves the file readable.
TEST(PythonCheckpoint, AnyDamagedByteIsAnErrorOrHarmless) {
  const std::string whole = read_file(checkpoint("state_dict.pt"));
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char change : {'\x01', '\x80', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      refused += static_cast<int>(!message_of<Error>([&] {
                                     const TensorStore store("m.pt", [&](const std::string& path) {
                                       return std::make_shared<TextFile>(damaged, path);
                                     });
                                     for (const auto& [name, info] : store.tensors()) store.get(name);
                                   }).empty());
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace offprof

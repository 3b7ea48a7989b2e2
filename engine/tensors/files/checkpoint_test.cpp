// Tests with files saved by PyTorch itself: see test_checkpoints/make.py, and the exported models.
#include "engine/tensors/files/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "engine/tensors/files/tensor_archive.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

std::string checkpoint(const std::string& name) {
  return std::string(OFFPROF_TEST_CHECKPOINTS "/") + name;
}

TEST(Checkpoint, ListsAStateDictOfPyTorch) {
  const Checkpoint state(checkpoint("state_dict.pt"));
  EXPECT_EQ(state.tensors().size(), 7U);
  EXPECT_EQ(state.bytes(), 12 * 4 + 5 * 4 * 4 + 8);
  const CheckpointTensor& weight = state.at("0.weight");
  EXPECT_EQ(weight.dtype, "float32");
  EXPECT_THAT(weight.sizes, ElementsAre(4, 3));
  EXPECT_THAT(weight.strides, IsEmpty());
  EXPECT_EQ(state.at("1.num_batches_tracked").dtype, "int64");
}

TEST(Checkpoint, FindsTheBytesOfATensor) {
  const Checkpoint state(checkpoint("state_dict.pt"));
  const CheckpointTensor& weight = state.at("0.weight");
  std::array<char, 12 * sizeof(float)> bytes{};
  read_all(*weight.file, weight.offset, bytes);
  std::array<float, 12> numbers{};
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(Checkpoint, KeepsStridesThatAreNotRowMajor) {
  EXPECT_THAT(Checkpoint(checkpoint("views.pt")).at("float32").strides, ElementsAre(1, 3));
}

TEST(Checkpoint, SuggestsTheNearestName) {
  const Checkpoint state(checkpoint("state_dict.pt"));
  try {
    state.at("0.weights");
    FAIL() << "a tensor that is not there";
  } catch (const Error& error) {
    EXPECT_THAT(error.hint(), HasSubstr("`0.weight`"));
  }
}

TEST(TensorArchive, ListsTheParametersOfATorchScriptModule) {
  const TensorArchive module(open_readable(OFFPROF_TEST_MODELS "/qwen2.pt"),
                             TensorArchive::Accepts::kModulesToo);
  EXPECT_TRUE(module.is_module());
  EXPECT_THAT(module.tensors(), Contains(Key(HasSubstr("embed_tokens.weight"))));
  for (const auto& [name, entry] : module.tensors()) EXPECT_NE(entry.dtype, "") << name;
}

TEST(TensorArchive, RejectsAModuleWhereADictionaryIsExpected) {
  try {
    const Checkpoint module(OFFPROF_TEST_MODELS "/qwen2.pt");
    FAIL() << "a module";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("is a TorchScript module"));
  }
}

}  // namespace
}  // namespace offprof

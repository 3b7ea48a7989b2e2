#include "engine/tensors/offloaded_tensor.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <fstream>

#include "engine/tensors/files/safetensors_writer.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/folder_test.h"
#include "tests/support/random_tensors.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"
#include "traces/base/temporary.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OffloadedTensorTest : public FolderTest {
 protected:
  OffloadedTensor offloaded(const at::Tensor& tensor, const std::string& name = "w") const {
    return {tensor, name, folder_};
  }
  /// Writes and reads the tensor, opens the file again and reads it again.
  void expect_round_trip(const at::Tensor& tensor) const {
    { EXPECT_TRUE(same_bits(offloaded(tensor).load(), tensor)) << description(tensor); }
    EXPECT_TRUE(same_bits(OffloadedTensor::open("w", folder_).load(), tensor)) << description(tensor);
  }
  std::string refusal_to_offload(const at::Tensor& tensor) const {
    return message_of<Error>([&] { offloaded(tensor); });
  }
  std::ptrdiff_t count_files() const {
    return std::distance(fs::directory_iterator(path_), fs::directory_iterator());
  }

  std::shared_ptr<OffloadFolder> folder_ = OffloadFolder::open(path_);
};

TEST_F(OffloadedTensorTest, PreservesEveryDtypeBitByBit) {
  for (const at::ScalarType dtype : plain_dtypes()) {
    expect_round_trip(random_bits({3, 5}, dtype, 1));
    expect_round_trip(random_bits({}, dtype, 2));
    expect_round_trip(random_bits({0, 4}, dtype, 3));
  }
}

TEST_F(OffloadedTensorTest, PreservesStridesWithoutSharedOrUnusedMemory) {
  const at::Tensor tensor = at::randn({2, 3, 4, 5});
  for (const at::Tensor& layout :
       {tensor.permute({2, 0, 3, 1}), tensor.contiguous(at::MemoryFormat::ChannelsLast)}) {
    expect_round_trip(layout);
    EXPECT_EQ(OffloadedTensor::open("w", folder_).load().strides(), layout.strides());
  }
  for (const at::Tensor& layout :
       {tensor.slice(3, 0, 5, 2), tensor.select(1, 2), tensor.new_ones({1, 3}).expand({4, 3}),
        at::arange(10).as_strided({3, 4}, {2, 1}, 1)}) {
    expect_round_trip(layout);
    EXPECT_TRUE(OffloadedTensor::open("w", folder_).load().is_contiguous());
  }
}

TEST_F(OffloadedTensorTest, WritesTheNumbersOfConjugateAndNegativeViews) {
  const at::Tensor tensor = at::view_as_complex(at::randn({3, 2}));
  const at::Tensor conjugate = tensor.conj();
  EXPECT_TRUE(offloaded(conjugate).load().equal(conjugate.resolve_conj()));
  EXPECT_TRUE(offloaded(at::imag(conjugate)).load().equal(at::imag(conjugate).resolve_neg()));
}

TEST_F(OffloadedTensorTest, QuantisedValuesStayQuantisedOnTheDisk) {
  const at::Tensor numbers = at::randn({4, 6});
  for (const at::ScalarType dtype : {at::kQInt8, at::kQUInt8, at::kQInt32}) {
    const at::Tensor quantised = at::quantize_per_tensor(numbers, 0.1, 3, dtype);
    const at::Tensor back = offloaded(quantised).load();
    EXPECT_EQ(back.scalar_type(), dtype);
    EXPECT_TRUE(back.int_repr().equal(quantised.int_repr()));
    EXPECT_EQ(back.q_scale(), quantised.q_scale());
    EXPECT_EQ(back.q_zero_point(), 3);
  }
  const at::Tensor scales = at::rand({6}, at::kDouble) + 0.01, zeros = at::randint(0, 9, {6}, at::kLong);
  const at::Tensor channels = at::quantize_per_channel(numbers, scales, zeros, 1, at::kQInt8);
  const OffloadedTensor kept = offloaded(channels);
  EXPECT_EQ(kept.bytes(), 24);
  EXPECT_LT(fs::file_size(kept.path()), 24U + 2 * 6 * 8 + 512);
  const at::Tensor back = kept.load();
  EXPECT_TRUE(back.int_repr().equal(channels.int_repr()));
  EXPECT_TRUE(back.q_per_channel_scales().equal(scales));
  EXPECT_TRUE(back.q_per_channel_zero_points().equal(zeros));
  EXPECT_EQ(back.q_per_channel_axis(), 1);
}

TEST_F(OffloadedTensorTest, RejectsUnsupportedTensorsWithTheReason) {
  EXPECT_THAT(refusal_to_offload(at::eye(3).to_sparse()), HasSubstr("it is sparse"));
  EXPECT_THAT(refusal_to_offload(at::eye(3).to_sparse_csr()), HasSubstr("it is sparse"));
  EXPECT_THAT(refusal_to_offload(at::empty({2}, at::kMeta)), HasSubstr("meta device"));
  EXPECT_THAT(refusal_to_offload({}), HasSubstr("it is undefined"));
  EXPECT_THAT(refusal_to_offload(
                  at::quantize_per_channel(at::randn({2, 3}), at::rand({3}), at::rand({3}), 1, at::kQUInt8)),
              HasSubstr("not affinely"));
  EXPECT_EQ(count_files(), 1) << "the lock";
}

TEST_F(OffloadedTensorTest, DropsGradients) {
  const at::Tensor leaf = at::randn({3}).set_requires_grad(true);
  EXPECT_FALSE(offloaded(leaf * 2).load().requires_grad());
}

TEST_F(OffloadedTensorTest, FreesTheValueAfterEachAccess) {
  const at::Tensor tensor = at::randn({256, 256});
  const OffloadedTensor kept = offloaded(tensor);
  const Bytes live = torch_allocator().live_bytes();
  EXPECT_TRUE(kept.with([&](const at::Tensor& value) { return value.equal(tensor); }));
  EXPECT_EQ(torch_allocator().live_bytes(), live);
  kept.load().zero_();
  EXPECT_TRUE(kept.load().equal(tensor));
}

TEST_F(OffloadedTensorTest, DescribesTheValueWithoutReadingIt) {
  OffloadedTensor kept = offloaded(at::zeros({2, 3}, at::kHalf));
  write_file(kept.path().string(), "broken");
  EXPECT_EQ(kept.name(), "w");
  EXPECT_EQ(kept.dtype(), at::kHalf);
  EXPECT_THAT(kept.sizes(), ElementsAre(2, 3));
  EXPECT_EQ(kept.numel(), 6);
  EXPECT_EQ(kept.bytes(), 12);
  EXPECT_EQ(kept.to(at::kCPU).device(), at::kCPU);
  EXPECT_THAT(message_of<Error>([&] { kept.to(at::kMeta); }), HasSubstr("meta device"));
}

TEST_F(OffloadedTensorTest, UpdatesReplaceTheValue) {
  OffloadedTensor kept = offloaded(at::zeros({2, 3}));
  const at::Tensor values = at::randn({3, 2}).t();
  kept.update_values(values);
  EXPECT_TRUE(same_bits(kept.load(), values));
  EXPECT_EQ(kept.load().strides(), values.strides());
}

TEST_F(OffloadedTensorTest, StrictUpdatesRejectAnotherShapeOrDtype) {
  OffloadedTensor kept = offloaded(at::zeros({2, 3}));
  EXPECT_THAT(message_of<Error>([&] {
                kept.update_values(at::ones({3, 2}));
              }),
              AllOf(HasSubstr("'w' has shape [2, 3]"), HasSubstr("the new values have [3, 2]")));
  EXPECT_THAT(message_of<Error>([&] {
                kept.update_values(at::ones({2, 3}, at::kBFloat16));
              }),
              AllOf(HasSubstr("dtype float32"), HasSubstr("the new values have bfloat16")));
  EXPECT_THAT(message_of<Error>([&] { kept.update_values({}); }), HasSubstr("undefined"));
  EXPECT_TRUE(kept.load().equal(at::zeros({2, 3})));
}

TEST_F(OffloadedTensorTest, LaxUpdatesTakeTheNewShapeAndDtype) {
  OffloadedTensor kept = offloaded(at::zeros({2, 3}));
  kept.update_values(at::ones({4}), false);
  EXPECT_THAT(kept.sizes(), ElementsAre(4));
  kept.update_values(at::ones({4}, at::kLong), true, false);
  EXPECT_EQ(kept.dtype(), at::kLong);
  EXPECT_TRUE(kept.load().equal(at::ones({4}, at::kLong)));
  EXPECT_EQ(count_files(), 2) << "the lock, and one value";
}

TEST_F(OffloadedTensorTest, KeepsTheOldValueWhenTheDiskIsFullAtAnyByte) {
  const at::Tensor old = at::randn({64});
  OffloadedTensor kept = offloaded(old);
  for (const rlim_t room : {0, 1, 8, 100, 1000, 10'000}) {
    std::string hint;
    try {
      const FileSizeLimit full(room);
      kept.update_values(at::randn({30'000}), false);
    } catch (const Error& error) {
      hint = error.hint();
    }
    EXPECT_THAT(hint, HasSubstr("ulimit -f")) << room;
    EXPECT_THAT(kept.sizes(), ElementsAre(64));
    EXPECT_TRUE(kept.load().equal(old));
  }
  EXPECT_EQ(count_files(), 2);
}

TEST_F(OffloadedTensorTest, RejectsANameThatAnotherTensorOfTheFolderHas) {
  const OffloadedTensor kept = offloaded(at::zeros({2}));
  EXPECT_THAT(refusal_to_offload(at::ones({2})), HasSubstr("is named 'w'"));
  const OffloadedTensor other = offloaded(at::ones({2}), "../w");
  EXPECT_TRUE(kept.load().equal(at::zeros({2})));
  EXPECT_EQ(other.path().parent_path(), path_);
}

TEST_F(OffloadedTensorTest, RemovesTheFileWhenItIsDiscarded) {
  offloaded(at::zeros({2})).discard();
  EXPECT_TRUE(folder_->names().empty());
  EXPECT_THAT(message_of<Error>([&] { OffloadedTensor::open("w", folder_); }), HasSubstr("cannot read"));
}

/// Valid safetensors files that do not describe a value.
TEST_F(OffloadedTensorTest, RejectsFilesWithoutAValue) {
  using Metadata = std::map<std::string, std::string, std::less<>>;
  const auto refusal = [&](const char* name, TensorDtype dtype, const Metadata& metadata) {
    SafetensorsWriter writer(folder_->file_of("w").string(), {{name, dtype, {2, 4}}}, metadata);
    writer.write(std::string(static_cast<std::size_t>(bits_of(dtype)), 'x'));
    writer.finish();
    return message_of<Error>([&] { OffloadedTensor::open("w", folder_).load(); });
  };
  const auto u8 = TensorDtype::kU8;
  EXPECT_EQ(refusal("value", u8, {{"dtype", "uint8"}}), "");
  EXPECT_EQ(refusal("value", u8, {{"dtype", "uint8"}, {"strides", "[1, 2]"}}), "");
  EXPECT_THAT(refusal("weight", u8, {{"dtype", "uint8"}}), HasSubstr("there is no tensor 'value'"));
  EXPECT_THAT(refusal("value", u8, {}), HasSubstr("do not name a dtype"));
  EXPECT_THAT(refusal("value", u8, {{"dtype", "float"}}), HasSubstr("do not name a dtype"));
  EXPECT_THAT(refusal("value", u8, {{"dtype", "float32"}}), HasSubstr("float32 is stored as U8"));
  EXPECT_THAT(refusal("value", u8, {{"dtype", "complex128"}}), HasSubstr("complex128 is stored as U8"));
  for (const char* strides :
       {"[1]", "[1, 1]", "[2, 1]", "[0, 1]", "[8, 1]", "[1, 9223372036854775807]", "[1, 3]"})
    EXPECT_THAT(refusal("value", u8, {{"dtype", "uint8"}, {"strides", strides}}),
                HasSubstr("do not match shape"));
  EXPECT_THAT(refusal("value", u8, {{"dtype", "uint8"}, {"strides", "[1, -2]"}}), HasSubstr("is negative"));
  EXPECT_THAT(refusal("value", u8, {{"dtype", "uint8"}, {"strides", "["}}), HasSubstr("truncated"));
  EXPECT_THAT(refusal("value", u8, {{"dtype", "quint8"}}), HasSubstr("there is no tensor 'scale'"));
}

}  // namespace
}  // namespace offprof

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "engine/transforms/cast.h"
#include "engine/transforms/quantize.h"
#include "engine/transforms/transform_contract.h"
#include "engine/transforms/transform_table.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// --- The contract of all transforms ---

class TransformTest : public TorchTest, public testing::WithParamInterface<std::string> {
 protected:
  const std::shared_ptr<const Transform> transform_ = make_transform(GetParam());
};

TEST_P(TransformTest, KeepsTheContract) {
  EXPECT_THAT(breaches_of_contract(*transform_, at::kCPU), IsEmpty());
}

TEST_P(TransformTest, ReturnsTheRequestedName) {
  EXPECT_EQ(transform_->name(), GetParam());
}

TEST_P(TransformTest, AllocatesTheSameWhateverTheValues) {
  const auto sizes_for = [&](const at::Tensor& values) {
    const MemoryLog log(device_);
    transform_->decode(transform_->encode(values), values.scalar_type(), values.numel());
    return log.changes;
  };
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBool}) {
    if (!transform_->takes(type)) continue;
    const at::Tensor zeros = at::zeros({70000}, type), others = at::rand({70000}).gt(0.5).to(type);
    EXPECT_EQ(sizes_for(zeros), sizes_for(others)) << type;
    if (!at::isFloatingType(type)) continue;
    EXPECT_EQ(sizes_for(zeros), sizes_for(at::full({70000}, NAN, type))) << type;
  }
}

/// Every transform, as rules name it, and the least and greatest parameters.
std::vector<std::string> all_transforms() {
  std::vector<std::string> names = transform_names();
  names.insert(names.end(), {"quantize:uint8:1", "quantize:uint8:65536"});
  return names;
}

INSTANTIATE_TEST_SUITE_P(, TransformTest, testing::ValuesIn(all_transforms()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, ':', '_');
  return name;
});

/// A transform that violates the contract as the test requests.
class Broken final : public Transform {
 public:
  std::string name() const override { return "broken"; }
  bool is_lossless() const override { return claims_lossless; }
  bool takes(at::ScalarType type) const override { return type == at::kFloat; }
  Bytes encoded_bytes(at::ScalarType, std::int64_t elements) const override {
    return elements * 4 + extra_bytes;
  }
  Encoded encode(const at::Tensor& values) const override {
    if (writes_to_values) values.fill_(0);
    const at::Tensor made = values.add(is_random ? at::rand({}).item<double>() : offset);
    return {made.view(at::kByte)};
  }
  at::Tensor decode(const Encoded& encoded, at::ScalarType type, std::int64_t) const override {
    return encoded.bytes.view(type).clone();
  }
  at::Tensor error_bound(const at::Tensor& values) const override {
    return at::zeros_like(values, values.options().dtype(at::kDouble));
  }

  bool claims_lossless = false, writes_to_values = false, is_random = false;
  Bytes extra_bytes = 0;
  double offset = 0;
};

TEST(TransformContract, ACorrectTransformHasNoBreach) {
  Broken whole;
  EXPECT_THAT(breaches_of_contract(whole, at::kCPU), IsEmpty());
}

TEST(TransformContract, FindsEveryBreach) {
  const auto breaches = [](auto set) {
    Broken broken;
    set(broken);
    const std::vector<std::string> found = breaches_of_contract(broken, at::kCPU);
    return found.empty() ? std::string() : found.front();
  };
  EXPECT_THAT(breaches([](Broken& b) { b.offset = 0.5; }), HasSubstr("is required"));
  EXPECT_THAT(breaches([](Broken& b) { b.offset = 0.5, b.claims_lossless = true; }),
              HasSubstr("decode returns different bits"));
  EXPECT_THAT(breaches([](Broken& b) { b.writes_to_values = true; }), HasSubstr("changes the values"));
  EXPECT_THAT(breaches([](Broken& b) { b.is_random = true; }),
              HasSubstr("the same values are encoded to different bytes"));
  EXPECT_THAT(breaches([](Broken& b) { b.extra_bytes = 4; }),
              HasSubstr("does not have encoded_bytes() bytes"));
}

// --- Single transforms ---

TEST(QuantizeTest, IsOffByHalfTheScaleAtMost) {
  at::manual_seed(3);
  const at::Tensor values = at::randn({1 << 21}, at::kDouble);  // more than one piece
  const Quantize quantize;
  const at::Tensor found = quantize.decode(quantize.encode(values), at::kDouble, values.numel());
  const double scale = (values.max() - values.min()).item<double>() / 255;
  EXPECT_LE((found - values).abs().max().item<double>(), scale / 2 * (1 + 1e-12));
  EXPECT_GE((found - values).abs().max().item<double>(), scale / 2 * 0.999);
}

TEST(QuantizeTest, EachBlockHasItsOwnScale) {
  const at::Tensor values = at::cat({at::rand({128}), at::rand({128}).mul(1000)});
  const Quantize blocks(128);
  const at::Tensor found = blocks.decode(blocks.encode(values), at::kFloat, 256);
  EXPECT_LE((found - values).narrow(0, 0, 128).abs().max().item<double>(), 1.0 / 255 / 2 * 1.001);
}

TEST(QuantizeTest, TakesOneBytePerElementAndTwoNumbersPerBlock) {
  EXPECT_EQ(Quantize().encoded_bytes(at::kFloat, 1000), 1000 + 8);
  EXPECT_EQ(Quantize().encoded_bytes(at::kDouble, 1001), 1008 + 16);
  EXPECT_EQ(Quantize(100).encoded_bytes(at::kFloat, 1001), 1008 + 11 * 8);
}

TEST(QuantizeTest, WorksInPiecesOfBoundedMemory) {
  HostDevice counted(torch_allocator(), Link{});
  const at::Tensor values = at::rand({1 << 24});
  const Quantize quantize;
  counted.reset_peak();
  const Bytes before = counted.live_bytes();
  const Encoded encoded = quantize.encode(values);
  EXPECT_LE(counted.peak_bytes() - before, encoded.bytes.numel() + 32 * kMiB);
}

TEST(TransformTable, NamesTheAvailableTransformsAndParameters) {
  const auto message = [](const std::string& name) {
    try {
      make_transform(name);
    } catch (const Error& error) {
      return std::string(error.what()) + " " + error.hint();
    }
    return std::string("no error");
  };
  EXPECT_THAT(message("quantise:uint8"),
              HasSubstr("unknown transform 'quantise:uint8' Transforms: quantize:uint8"));
  EXPECT_THAT(message("bits:3"), HasSubstr("bits takes no parameter"));
  EXPECT_THAT(message("quantize:uint8:0"), HasSubstr("takes 1 to 65536 elements per block"));
  EXPECT_THAT(message("quantize:uint8:many"), HasSubstr("takes 1 to 65536"));
  for (const std::string& name : transform_names()) EXPECT_EQ(message(name), "no error");
}

}  // namespace
}  // namespace offprof

// Tests of steps on a device that does not have enough memory for them.
#include <gmock/gmock.h>

#include "tests/hazards/hazard_fixture.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OutOfMemoryTest : public HazardTest, public testing::WithParamInterface<std::string> {
 protected:
  /// Size at which a caching allocator takes each block from the device separately.
  static constexpr Bytes kBytes = 12 * kMiB;

  void SetUp() override { open(GetParam()); }
  void TearDown() override {
    if (!IsSkipped()) device().set_capacity(std::nullopt);
    HazardTest::TearDown();
  }

  at::Tensor tensor(double value) {
    const auto options = at::TensorOptions(device().torch_device()).dtype(at::kDouble);
    return at::full({kBytes / 8}, value, options);
  }

  /// Returns a step that has saved three tensors, of which the last two are still on the device. A fourth
  /// tensor takes the memory of the first. Together they fill the device.
  std::shared_ptr<OffloadStep> full_step(at::Tensor& filler) {
    device().release_cache();
    Policy policy = preset_policy("offload");
    policy.stash_count = 2;
    auto step = std::make_shared<OffloadStep>(device(), policy, std::vector<SavedId>{},
                                              std::make_shared<const Residents>(), nullptr);
    for (const double value : {1, 2, 3}) step->pack(tensor(value));
    filler = tensor(4);
    device().reset_peak();
    const auto cache = device().cache_use();
    device().set_capacity(cache ? cache->reserved_peak_bytes : device().live_bytes());
    return step;
  }

  void expect_value(const at::Tensor& actual, double value) {
    expect_equal({actual}, {tensor_on_host(value).to(device().torch_device())});
  }
  static at::Tensor tensor_on_host(double value) { return at::full({kBytes / 8}, value, at::kDouble); }
};

TEST_P(OutOfMemoryTest, DropsTheStashForAReload) {
  expect_nothing_left([&] {
    at::Tensor filler;
    const auto step = full_step(filler);
    const at::Tensor first = step->unpack(0), second = step->unpack(1);
    device().set_capacity(std::nullopt);
    EXPECT_EQ(step->refused_reloads(), 1);
    EXPECT_FALSE(device().take_out_of_memory().has_value());
    expect_value(first, 1);
    expect_value(second, 2);
    expect_value(step->unpack(2), 3);
    for (const SavedId saved : {0, 1, 2}) step->release(saved);
  });
}

TEST_P(OutOfMemoryTest, NamesTheTensorThatCannotBeReloaded) {
  expect_nothing_left([&] {
    at::Tensor filler;
    const auto step = full_step(filler);
    const at::Tensor first = step->unpack(0), second = step->unpack(1);
    EXPECT_THAT(message_of([&] { step->unpack(2); }),
                AllOf(HasSubstr("saved tensor 2, float64[1572864], cannot be reloaded for backward"),
                      HasSubstr("no device memory for its 12582912 bytes"), HasSubstr("out of memory")));
    EXPECT_TRUE(device().take_out_of_memory().has_value());
    for (const SavedId saved : {0, 1, 2}) step->release(saved);
    device().set_capacity(std::nullopt);
  });
}

/// Backward reloads tensors for which there is no room beside the stash of another forward.
TEST_P(OutOfMemoryTest, AnyCapacityGivesTheGradientsOrAnError) {
  const bool has_cache = device().cache_use().has_value();
  const Bytes bytes = has_cache ? kBytes : 32 * kKiB;
  const Run run = [&](Graph& g) {
    const auto options = at::TensorOptions(device().torch_device()).dtype(at::kDouble);
    const Tensor leaf = at::full({bytes / 8}, 0.5, options).set_requires_grad(true);
    const Tensor first = leaf.exp().tanh().sin().sum(), second = (leaf * 2).exp().sin().sum();
    first.backward();
    second.backward();
    g.x.mutable_grad() = leaf.grad();
  };
  const std::vector<at::Tensor> expected = gradients(run, std::nullopt);
  for (const Policy& policy : policies_here()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    expect_equal(gradients(run, policy), expected);
    device().release_cache();
    const Leftovers before = leftovers();
    device().reset_peak();
    gradients(run, policy);
    const Bytes most = has_cache ? device().cache_use()->reserved_peak_bytes : device().peak_bytes();
    int errors = 0;
    for (Bytes capacity = most; capacity > before.device_bytes; capacity -= bytes / 3) {
      device().release_cache();
      device().set_capacity(capacity);
      std::vector<at::Tensor> actual;
      const std::string message = message_of([&] { actual = gradients(run, policy); });
      device().set_capacity(std::nullopt);
      if (message.empty()) {
        // With a cache, the placement of blocks varies, so less room may be enough.
        EXPECT_TRUE(errors == 0 || has_cache) << "a step with less memory gave no error";
        expect_equal(actual, expected);
      } else {
        ++errors;
        EXPECT_THAT(message, HasSubstr("out of memory"));
      }
      actual.clear();
      ASSERT_EQ(left_since(before), "");
    }
    EXPECT_GT(errors, 0);
    EXPECT_LT(errors, most / (bytes / 3)) << "a step with enough memory failed";
  }
}

INSTANTIATE_TEST_SUITE_P(, OutOfMemoryTest, testing::ValuesIn(devices_under_test()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace offprof

#include "engine/parameters/parameter_offloader.h"

#include "tests/support/test_folder.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using at::Tensor;

enum class StoreKind { kHost, kDisk, kDeviceDisk };

class ParameterOffloaderTest : public TorchTest, public testing::WithParamInterface<StoreKind> {
 protected:
  static constexpr std::int64_t kWidth = 32;
  static constexpr Bytes kWeightBytes = kWidth * kWidth * 8;

  ParameterOffloaderTest() : offloader_(device_, make_store(), 0) {}
  ~ParameterOffloaderTest() override { device_.set_capacity(std::nullopt); }

  std::unique_ptr<ParameterStore> make_store() {
    if (GetParam() == StoreKind::kHost) return make_host_parameter_store(device_);
    if (GetParam() == StoreKind::kDisk) return make_disk_parameter_store(folder_.path());
    device_.open_disk({.folder = folder_.path()});
    return make_device_disk_parameter_store(device_);
  }

  static Tensor weight() { return leaf({kWidth, kWidth}); }
  static Tensor input() { return at::randn({8, kWidth}, at::kDouble); }
  static bool is_away(const Tensor& value) { return value.storage().data() == nullptr; }

  /// Runs a step of gradient descent on layers, with their loss and backward, in one Scope.
  static void train(const std::vector<Tensor>& parameters, const Tensor& x) {
    Tensor y = x;
    for (const Tensor& w : parameters) y = at::tanh(at::linear(y, w));
    y.square().mean().backward();
    const at::NoGradGuard no_grad;
    for (Tensor w : parameters) w.sub_(w.grad(), 0.1);
    for (Tensor w : parameters) w.mutable_grad() = Tensor();
  }

  /// Returns the parameters' values after loading them.
  std::vector<Tensor> values_of(const std::vector<Tensor>& parameters) {
    const at::NoGradGuard no_grad;
    const ParameterOffloader::Scope scope(&offloader_);
    std::vector<Tensor> values;
    for (const Tensor& w : parameters) values.push_back(w.clone());
    return values;
  }

  TestFolder folder_;
  ParameterOffloader offloader_;
};

TEST_P(ParameterOffloaderTest, TrainsToTheSameBitsAndLeavesNothingOnTheDevice) {
  std::vector<Tensor> plain = {weight(), weight(), weight()}, offloaded;
  for (const Tensor& w : plain) offloaded.push_back(w.detach().clone().set_requires_grad(true));
  const Tensor x = input();
  for (const Tensor& w : offloaded) offloader_.adopt_parameter(w);
  const Bytes before = live_bytes();
  for (int i = 0; i < 3; ++i) {
    {
      const ParameterOffloader::Scope scope(&offloader_);
      train(offloaded, x);
    }
    offloader_.forget_gradients();
    offloader_.end_step();
    if (i == 1) offloader_.learn();
    EXPECT_EQ(live_bytes(), before);
    train(plain, x);
  }
  const std::vector<Tensor> values = values_of(offloaded);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(bitwise_equal(values[i], plain[i].detach()));
}

TEST_P(ParameterOffloaderTest, KeepsAParameterOnTheDeviceOnlyWhileAnOperatorUsesIt) {
  const Tensor w = weight();
  offloader_.adopt_parameter(w);
  EXPECT_TRUE(is_away(w));
  const at::NoGradGuard no_grad;
  const ParameterOffloader::Scope scope(&offloader_);
  const Bytes before = live_bytes();
  device_.reset_peak();
  const Tensor sum = w.sum();
  EXPECT_TRUE(is_away(w));
  EXPECT_EQ(device_.peak_bytes(), before + kWeightBytes + static_cast<Bytes>(sum.nbytes()));
}

TEST_P(ParameterOffloaderTest, LoadsTheStorageOfAView) {
  const at::NoGradGuard no_grad;
  const Tensor w = weight(), view = w.t()[3], expected = view.clone();
  offloader_.adopt(w);
  const ParameterOffloader::Scope scope(&offloader_);
  EXPECT_TRUE(is_away(view));
  EXPECT_TRUE(bitwise_equal(view.clone(), expected));
  EXPECT_TRUE(is_away(w.t()));  // a view needs no values
}

TEST_P(ParameterOffloaderTest, KeepsInPlaceChanges) {
  const at::NoGradGuard no_grad;
  Tensor w = weight();
  const Tensor doubled = w * 2;
  offloader_.adopt(w);
  const ParameterOffloader::Scope scope(&offloader_);
  w.mul_(2);
  EXPECT_TRUE(is_away(w));
  EXPECT_TRUE(bitwise_equal(w.clone(), doubled));
}

TEST_P(ParameterOffloaderTest, FindsTensorsInLists) {
  const at::NoGradGuard no_grad;
  const Tensor a = weight(), b = weight(), expected = at::cat({a, b});
  offloader_.adopt(a);
  offloader_.adopt(b);
  const ParameterOffloader::Scope scope(&offloader_);
  EXPECT_TRUE(bitwise_equal(at::cat({a, b}), expected));
}

TEST_P(ParameterOffloaderTest, LoadsAGradientToAddToIt) {
  const Tensor w = weight(), x = input();
  at::linear(x, w).sum().backward();
  at::linear(x, w).sum().backward();
  const Tensor expected = w.grad().clone();
  w.mutable_grad() = Tensor();
  offloader_.adopt_parameter(w);
  Tensor actual;
  {
    const ParameterOffloader::Scope scope(&offloader_);
    at::linear(x, w).sum().backward();
    EXPECT_TRUE(is_away(w.grad()));
    at::linear(x, w).sum().backward();
    actual = w.grad().clone();
  }
  EXPECT_TRUE(bitwise_equal(actual, expected));
  w.mutable_grad() = Tensor();
  offloader_.forget_gradients();
}

TEST_P(ParameterOffloaderTest, AccumulatesOneGradientOfATiedParameter) {
  const Tensor w = weight(), x = input();
  at::linear(at::linear(x, w), w).sum().backward();
  const Tensor expected = w.grad().clone();
  w.mutable_grad() = Tensor();
  offloader_.adopt_parameter(w);
  const ParameterOffloader::Scope scope(&offloader_);
  at::linear(at::linear(x, w), w).sum().backward();
  EXPECT_TRUE(bitwise_equal(w.grad().clone(), expected));
  w.mutable_grad() = Tensor();
  offloader_.forget_gradients();
}

TEST_P(ParameterOffloaderTest, ReportsOutOfMemoryAndRecoversInTheNextStep) {
  const Tensor w = weight(), x = input();
  offloader_.adopt_parameter(w);
  device_.set_capacity(live_bytes() + kWeightBytes / 2);
  {
    const ParameterOffloader::Scope scope(&offloader_);
    EXPECT_THROW(at::linear(x, w), c10::OutOfMemoryError);
  }
  device_.take_out_of_memory();
  device_.set_capacity(std::nullopt);
  offloader_.end_step();
  const ParameterOffloader::Scope scope(&offloader_);
  EXPECT_NO_THROW(at::linear(x, w));
}

TEST_P(ParameterOffloaderTest, ReleasesTheParametersOfAFailedOperator) {
  const Tensor w = weight();
  offloader_.adopt(w);
  {
    const ParameterOffloader::Scope scope(&offloader_);
    EXPECT_ANY_THROW(at::linear(at::randn({2, kWidth + 1}, at::kDouble), w));
  }
  offloader_.end_step();
  EXPECT_TRUE(is_away(w));
}

TEST_P(ParameterOffloaderTest, KeepsSmallTensorsOnTheDevice) {
  const Tensor w = leaf({3});
  offloader_.adopt_parameter(w);
  EXPECT_FALSE(is_away(w));
  EXPECT_FALSE(offloader_.is_parameter_group(w.storage()));
}

TEST_P(ParameterOffloaderTest, LeavesASavedParameterToTheOffloader) {
  const Tensor w = weight(), x = input().set_requires_grad(true);
  offloader_.adopt_parameter(w);
  auto residents = std::make_shared<Residents>();
  residents->is_parameter_group = [&](const c10::Storage& storage) {
    return offloader_.is_parameter_group(storage);
  };
  residents_ = residents;
  const ParameterOffloader::Scope scope(&offloader_);
  const auto step =
      run_step(test_policy("offload", 0, std::nullopt), [&] { at::tanh(at::linear(x, w)).sum().backward(); });
  EXPECT_EQ(step->ledger().count({Place::kDevice, PlacementReason::kParameterGroup}), 1U);
  w.mutable_grad() = Tensor();
  offloader_.forget_gradients();
}

TEST_P(ParameterOffloaderTest, OffloadsValuesThatAStepMakes) {
  const at::NoGradGuard no_grad;
  const Tensor x = weight(), expected = x * 2;
  const Bytes before = live_bytes();
  for (int step = 0; step < 3; ++step) {
    const ParameterOffloader::Scope scope(&offloader_);
    const AllocationId since = offloader_.next_allocation();
    Tensor y = x * 2;
    offloader_.adopt_for_step(y, since);
    EXPECT_TRUE(is_away(y));
    EXPECT_TRUE(bitwise_equal(y.clone(), expected));
    EXPECT_TRUE(is_away(y));
    y = Tensor();
    offloader_.end_step();
    offloader_.learn();
    EXPECT_EQ(live_bytes(), before);
  }
}

TEST_P(ParameterOffloaderTest, IgnoresValuesOlderThanTheStep) {
  const Tensor x = weight();
  offloader_.adopt_for_step(x, offloader_.next_allocation());
  EXPECT_FALSE(is_away(x));
  EXPECT_FALSE(offloader_.is_parameter_group(x.storage()));
}

TEST_P(ParameterOffloaderTest, ReturnsAHeldValueToTheDeviceAfterTheStep) {
  const at::NoGradGuard no_grad;
  const Tensor x = weight(), expected = x * 2;
  const AllocationId since = offloader_.next_allocation();
  const Tensor y = x * 2;
  offloader_.adopt_for_step(y, since);
  EXPECT_TRUE(is_away(y));
  offloader_.end_step();
  EXPECT_FALSE(offloader_.is_parameter_group(y.storage()));
  ASSERT_FALSE(is_away(y));
  EXPECT_TRUE(bitwise_equal(y, expected));
}

/// The memory may be reused only when the copy into it is complete.
TEST_P(ParameterOffloaderTest, KeepsTheMemoryOfAReleasedGroupUntilItsLoadIsComplete) {
  const at::NoGradGuard no_grad;
  const Tensor w = weight();
  offloader_.adopt(w);
  const Bytes before = live_bytes();
  for (const bool is_learned : {false, true}) {
    const ParameterOffloader::Scope scope(&offloader_);
    const AllocationId since = offloader_.next_allocation();
    Tensor y = at::ones({kWidth, kWidth}, at::kDouble);
    offloader_.adopt_for_step(y, since);
    offloader_.set_window_bytes(2 * kWeightBytes);
    Tensor sum = w.sum();
    if (is_learned) {
      EXPECT_FALSE(is_away(y));
      y = Tensor();
      EXPECT_EQ(live_bytes(), before + 2 * kWeightBytes + static_cast<Bytes>(sum.nbytes()));
    } else {
      sum = y.sum();
      y = Tensor();
    }
    sum = Tensor();
    offloader_.end_step();
    offloader_.learn();
    offloader_.set_window_bytes(0);
    EXPECT_EQ(live_bytes(), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, ParameterOffloaderTest,
                         testing::Values(StoreKind::kHost, StoreKind::kDisk, StoreKind::kDeviceDisk),
                         [](const auto& store) {
                           if (store.param == StoreKind::kHost) return "host";
                           return store.param == StoreKind::kDisk ? "disk" : "device_disk";
                         });

TEST(DiskParameterStore, RejectsAFolderWhereNoFileCanBeMade) {
  EXPECT_THROW(make_disk_parameter_store("/nonexistent/folder"), Error);
}

}  // namespace
}  // namespace offprof

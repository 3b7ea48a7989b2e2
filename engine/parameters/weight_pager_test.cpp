#include "engine/parameters/weight_pager.h"

#include "tests/support/test_folder.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using at::Tensor;

enum class StoreKind { kHost, kDisk, kDeviceDisk };

class WeightPagerTest : public TorchTest, public testing::WithParamInterface<StoreKind> {
 protected:
  static constexpr std::int64_t kWidth = 32;
  static constexpr Bytes kWeightBytes = kWidth * kWidth * 8;

  WeightPagerTest() : pager_(device_, make_store(), 0) {}
  ~WeightPagerTest() override { device_.set_capacity(std::nullopt); }

  std::unique_ptr<WeightStore> make_store() {
    if (GetParam() == StoreKind::kHost) return make_host_weight_store(device_);
    if (GetParam() == StoreKind::kDisk) return make_disk_weight_store(folder_.path());
    device_.open_disk({.folder = folder_.path()});
    return make_device_disk_weight_store(device_);
  }

  static Tensor weight() { return leaf({kWidth, kWidth}); }
  static Tensor input() { return at::randn({8, kWidth}, at::kDouble); }
  static bool is_away(const Tensor& value) { return value.storage().data() == nullptr; }

  /// Runs a step of gradient descent on layers, with their loss and backward, in one Scope.
  static void train(const std::vector<Tensor>& weights, const Tensor& x) {
    Tensor y = x;
    for (const Tensor& w : weights) y = at::tanh(at::linear(y, w));
    y.square().mean().backward();
    const at::NoGradGuard no_grad;
    for (Tensor w : weights) w.sub_(w.grad(), 0.1);
    for (Tensor w : weights) w.mutable_grad() = Tensor();
  }

  /// Returns the parameters' values after loading them.
  std::vector<Tensor> values_of(const std::vector<Tensor>& weights) {
    const at::NoGradGuard no_grad;
    const WeightPager::Scope scope(&pager_);
    std::vector<Tensor> values;
    for (const Tensor& w : weights) values.push_back(w.clone());
    return values;
  }

  TestFolder folder_;
  WeightPager pager_;
};

TEST_P(WeightPagerTest, TrainsToTheSameBitsAndLeavesNothingOnTheDevice) {
  std::vector<Tensor> plain = {weight(), weight(), weight()}, paged;
  for (const Tensor& w : plain) paged.push_back(w.detach().clone().set_requires_grad(true));
  const Tensor x = input();
  for (const Tensor& w : paged) pager_.adopt_parameter(w);
  const Bytes before = live_bytes();
  for (int i = 0; i < 3; ++i) {
    {
      const WeightPager::Scope scope(&pager_);
      train(paged, x);
    }
    pager_.forget_gradients();
    pager_.end_step();
    if (i == 1) pager_.learn();
    EXPECT_EQ(live_bytes(), before);
    train(plain, x);
  }
  const std::vector<Tensor> values = values_of(paged);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(bitwise_equal(values[i], plain[i].detach()));
}

TEST_P(WeightPagerTest, KeepsAParameterOnTheDeviceOnlyWhileAnOperatorUsesIt) {
  const Tensor w = weight();
  pager_.adopt_parameter(w);
  EXPECT_TRUE(is_away(w));
  const at::NoGradGuard no_grad;
  const WeightPager::Scope scope(&pager_);
  const Bytes before = live_bytes();
  device_.reset_peak();
  const Tensor sum = w.sum();
  EXPECT_TRUE(is_away(w));
  EXPECT_EQ(device_.peak_bytes(), before + kWeightBytes + static_cast<Bytes>(sum.nbytes()));
}

TEST_P(WeightPagerTest, LoadsTheStorageOfAView) {
  const at::NoGradGuard no_grad;
  const Tensor w = weight(), view = w.t()[3], expected = view.clone();
  pager_.adopt(w);
  const WeightPager::Scope scope(&pager_);
  EXPECT_TRUE(is_away(view));
  EXPECT_TRUE(bitwise_equal(view.clone(), expected));
  EXPECT_TRUE(is_away(w.t()));  // a view needs no values
}

TEST_P(WeightPagerTest, KeepsInPlaceChanges) {
  const at::NoGradGuard no_grad;
  Tensor w = weight();
  const Tensor doubled = w * 2;
  pager_.adopt(w);
  const WeightPager::Scope scope(&pager_);
  w.mul_(2);
  EXPECT_TRUE(is_away(w));
  EXPECT_TRUE(bitwise_equal(w.clone(), doubled));
}

TEST_P(WeightPagerTest, FindsTensorsInLists) {
  const at::NoGradGuard no_grad;
  const Tensor a = weight(), b = weight(), expected = at::cat({a, b});
  pager_.adopt(a);
  pager_.adopt(b);
  const WeightPager::Scope scope(&pager_);
  EXPECT_TRUE(bitwise_equal(at::cat({a, b}), expected));
}

TEST_P(WeightPagerTest, LoadsAGradientToAddToIt) {
  const Tensor w = weight(), x = input();
  at::linear(x, w).sum().backward();
  at::linear(x, w).sum().backward();
  const Tensor expected = w.grad().clone();
  w.mutable_grad() = Tensor();
  pager_.adopt_parameter(w);
  Tensor actual;
  {
    const WeightPager::Scope scope(&pager_);
    at::linear(x, w).sum().backward();
    EXPECT_TRUE(is_away(w.grad()));
    at::linear(x, w).sum().backward();
    actual = w.grad().clone();
  }
  EXPECT_TRUE(bitwise_equal(actual, expected));
  w.mutable_grad() = Tensor();
  pager_.forget_gradients();
}

TEST_P(WeightPagerTest, AccumulatesOneGradientOfATiedParameter) {
  const Tensor w = weight(), x = input();
  at::linear(at::linear(x, w), w).sum().backward();
  const Tensor expected = w.grad().clone();
  w.mutable_grad() = Tensor();
  pager_.adopt_parameter(w);
  const WeightPager::Scope scope(&pager_);
  at::linear(at::linear(x, w), w).sum().backward();
  EXPECT_TRUE(bitwise_equal(w.grad().clone(), expected));
  w.mutable_grad() = Tensor();
  pager_.forget_gradients();
}

TEST_P(WeightPagerTest, ReportsOutOfMemoryAndRecoversInTheNextStep) {
  const Tensor w = weight(), x = input();
  pager_.adopt_parameter(w);
  device_.set_capacity(live_bytes() + kWeightBytes / 2);
  {
    const WeightPager::Scope scope(&pager_);
    EXPECT_THROW(at::linear(x, w), c10::OutOfMemoryError);
  }
  device_.take_out_of_memory();
  device_.set_capacity(std::nullopt);
  pager_.end_step();
  const WeightPager::Scope scope(&pager_);
  EXPECT_NO_THROW(at::linear(x, w));
}

TEST_P(WeightPagerTest, ReleasesTheParametersOfAFailedOperator) {
  const Tensor w = weight();
  pager_.adopt(w);
  {
    const WeightPager::Scope scope(&pager_);
    EXPECT_ANY_THROW(at::linear(at::randn({2, kWidth + 1}, at::kDouble), w));
  }
  pager_.end_step();
  EXPECT_TRUE(is_away(w));
}

TEST_P(WeightPagerTest, KeepsSmallTensorsOnTheDevice) {
  const Tensor w = leaf({3});
  pager_.adopt_parameter(w);
  EXPECT_FALSE(is_away(w));
  EXPECT_FALSE(pager_.is_page(w.storage()));
}

TEST_P(WeightPagerTest, LeavesASavedParameterToThePager) {
  const Tensor w = weight(), x = input().set_requires_grad(true);
  pager_.adopt_parameter(w);
  auto residents = std::make_shared<Residents>();
  residents->is_paged = [&](const c10::Storage& storage) { return pager_.is_page(storage); };
  residents_ = residents;
  const WeightPager::Scope scope(&pager_);
  const auto step =
      run_step(test_policy("offload", 0, std::nullopt), [&] { at::tanh(at::linear(x, w)).sum().backward(); });
  EXPECT_EQ(step->ledger().count({Place::kDevice, PlacementReason::kPaged}), 1U);
  w.mutable_grad() = Tensor();
  pager_.forget_gradients();
}

TEST_P(WeightPagerTest, OffloadsValuesThatAStepMakes) {
  const at::NoGradGuard no_grad;
  const Tensor x = weight(), expected = x * 2;
  const Bytes before = live_bytes();
  for (int step = 0; step < 3; ++step) {
    const WeightPager::Scope scope(&pager_);
    const AllocationId since = pager_.next_allocation();
    Tensor y = x * 2;
    pager_.adopt_for_step(y, since);
    EXPECT_TRUE(is_away(y));
    EXPECT_TRUE(bitwise_equal(y.clone(), expected));
    EXPECT_TRUE(is_away(y));
    y = Tensor();
    pager_.end_step();
    pager_.learn();
    EXPECT_EQ(live_bytes(), before);
  }
}

TEST_P(WeightPagerTest, IgnoresValuesOlderThanTheStep) {
  const Tensor x = weight();
  pager_.adopt_for_step(x, pager_.next_allocation());
  EXPECT_FALSE(is_away(x));
  EXPECT_FALSE(pager_.is_page(x.storage()));
}

TEST_P(WeightPagerTest, ReturnsAHeldValueToTheDeviceAfterTheStep) {
  const at::NoGradGuard no_grad;
  const Tensor x = weight(), expected = x * 2;
  const AllocationId since = pager_.next_allocation();
  const Tensor y = x * 2;
  pager_.adopt_for_step(y, since);
  EXPECT_TRUE(is_away(y));
  pager_.end_step();
  EXPECT_FALSE(pager_.is_page(y.storage()));
  ASSERT_FALSE(is_away(y));
  EXPECT_TRUE(bitwise_equal(y, expected));
}

/// The memory may be reused only when the copy into it is complete.
TEST_P(WeightPagerTest, KeepsTheMemoryOfAReleasedPageUntilItsLoadIsComplete) {
  const at::NoGradGuard no_grad;
  const Tensor w = weight();
  pager_.adopt(w);
  const Bytes before = live_bytes();
  for (const bool is_learned : {false, true}) {
    const WeightPager::Scope scope(&pager_);
    const AllocationId since = pager_.next_allocation();
    Tensor y = at::ones({kWidth, kWidth}, at::kDouble);
    pager_.adopt_for_step(y, since);
    pager_.set_window_bytes(2 * kWeightBytes);
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
    pager_.end_step();
    pager_.learn();
    pager_.set_window_bytes(0);
    EXPECT_EQ(live_bytes(), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, WeightPagerTest,
                         testing::Values(StoreKind::kHost, StoreKind::kDisk, StoreKind::kDeviceDisk),
                         [](const auto& store) {
                           if (store.param == StoreKind::kHost) return "host";
                           return store.param == StoreKind::kDisk ? "disk" : "device_disk";
                         });

TEST(DiskWeightStore, RejectsAFolderWhereNoFileCanBeMade) {
  EXPECT_THROW(make_disk_weight_store("/nonexistent/folder"), Error);
}

}  // namespace
}  // namespace offprof

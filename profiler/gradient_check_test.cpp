#include "profiler/gradient_check.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace offprof {
namespace {

using testing::HasSubstr;

at::Tensor numbers(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble);
}

GradientError error_of(const at::Tensor& expected, const at::Tensor& actual) {
  return gradient_errors({"w"}, {expected}, {actual}).value().at(0);
}

TEST(GradientErrors, AreTheLargestDifferenceItsNormAndTheAngle) {
  const GradientError error = error_of(numbers({3, 4}), numbers({3, 5}));
  EXPECT_EQ(error.parameter, "w");
  EXPECT_DOUBLE_EQ(error.max_abs, 1);
  EXPECT_DOUBLE_EQ(error.relative_norm, 1.0 / 5);
  EXPECT_DOUBLE_EQ(error.cosine, (9 + 20) / (5 * std::sqrt(34)));
}

TEST(GradientErrors, OfOtherTypesAreOfTheirValues) {
  const GradientError error =
      error_of(numbers({1e30, 0}).to(at::kFloat), numbers({2e30, 0}).to(at::kFloat));  // squares leave float
  EXPECT_NEAR(error.relative_norm, 1, 1e-6);
  EXPECT_NEAR(error.cosine, 1, 1e-12);
}

TEST(GradientErrors, AreNoneWhereNothingDiffers) {
  for (const at::Tensor& same : {numbers({3, 4}), numbers({0, 0}), numbers({})})
    EXPECT_EQ(error_of(same, same.clone()), GradientError{"w"});
}

TEST(GradientErrors, OfAGradientThatShouldBeZeroHaveNoEnd) {
  const GradientError error = error_of(numbers({0, 0}), numbers({0, 2}));
  EXPECT_DOUBLE_EQ(error.max_abs, 2);
  EXPECT_TRUE(std::isinf(error.relative_norm));
}

TEST(GradientErrors, ShowNumbersThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const GradientError error = error_of(numbers({3, 4}), numbers({3, nan}));
  EXPECT_TRUE(std::isnan(error.max_abs));
  EXPECT_FALSE(std::isfinite(error.relative_norm));
}

TEST(GradientErrors, PassOverParametersWithoutAGradient) {
  const auto errors = gradient_errors({"a", "b"}, {at::Tensor(), numbers({1})}, {at::Tensor(), numbers({2})});
  ASSERT_EQ(errors.value().size(), 1U);
  EXPECT_EQ(errors->front().parameter, "b");
}

TEST(GradientErrors, AreNoneOfGradientsThatAreNotThere) {
  EXPECT_EQ(gradient_errors({"w"}, {numbers({1})}, {at::Tensor()}), std::nullopt);
  EXPECT_EQ(gradient_errors({"w"}, {numbers({1})}, {numbers({1, 2})}), std::nullopt);
}

TEST(CompareGradients, IsBitwise) {
  EXPECT_EQ(compare_gradients({"w"}, {numbers({1, 2})}, {numbers({1, 2})}), "bitwise");
  const double next = std::nextafter(2.0, 3.0);
  EXPECT_THAT(
      compare_gradients({"a", "w"}, {numbers({1}), numbers({1, 2})}, {numbers({1}), numbers({1, next})}),
      HasSubstr("1 of 2 parameters differ; w differs by up to"));
  EXPECT_NE(compare_gradients({"w"}, {numbers({0.0})}, {numbers({-0.0})}), "bitwise");
}

}  // namespace
}  // namespace offprof

#include "profiler/stages/gradient_check.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace offprof {
namespace {

using testing::HasSubstr;

at::Tensor numbers(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble);
}

GradientError error_of(const at::Tensor& expected, const at::Tensor& actual) {
  return gradient_errors({"w"}, {expected}, {actual}).value().at(0);
}

TEST(GradientErrors, AreTheLargestDifferenceTheRelativeNormAndTheCosine) {
  const GradientError error = error_of(numbers({3, 4}), numbers({3, 5}));
  EXPECT_EQ(error.parameter, "w");
  EXPECT_DOUBLE_EQ(error.max_abs, 1);
  EXPECT_DOUBLE_EQ(error.relative_norm, 1.0 / 5);
  EXPECT_DOUBLE_EQ(error.cosine, (9 + 20) / (5 * std::sqrt(34)));
}

TEST(GradientErrors, AreComputedInFloat64) {
  const GradientError error =
      // the squares exceed float
      error_of(numbers({1e30, 0}).to(at::kFloat), numbers({2e30, 0}).to(at::kFloat));
  EXPECT_NEAR(error.relative_norm, 1, 1e-6);
  EXPECT_NEAR(error.cosine, 1, 1e-12);
}

TEST(GradientErrors, AreZeroForEqualGradients) {
  for (const at::Tensor& same : {numbers({3, 4}), numbers({0, 0}), numbers({})})
    EXPECT_EQ(error_of(same, same.clone()), GradientError{"w"});
}

TEST(GradientErrors, AreInfiniteIfTheExactGradientIsZero) {
  const GradientError error = error_of(numbers({0, 0}), numbers({0, 2}));
  EXPECT_DOUBLE_EQ(error.max_abs, 2);
  EXPECT_TRUE(std::isinf(error.relative_norm));
}

TEST(GradientErrors, ShowNonFiniteNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const GradientError error = error_of(numbers({3, 4}), numbers({3, nan}));
  EXPECT_TRUE(std::isnan(error.max_abs));
  EXPECT_FALSE(std::isfinite(error.relative_norm));
}

TEST(GradientErrors, SkipParametersWithoutAGradient) {
  const auto errors = gradient_errors({"a", "b"}, {at::Tensor(), numbers({1})}, {at::Tensor(), numbers({2})});
  ASSERT_EQ(errors.value().size(), 1U);
  EXPECT_EQ(errors->front().parameter, "b");
}

TEST(GradientErrors, AreEmptyIfGradientsAreMissingOrDifferInSize) {
  EXPECT_EQ(gradient_errors({"w"}, {numbers({1})}, {at::Tensor()}), std::nullopt);
  EXPECT_EQ(gradient_errors({"w"}, {numbers({1})}, {numbers({1, 2})}), std::nullopt);
}

TEST(CompareGradients, ReportsEqualGradientsAsBitwise) {
  EXPECT_EQ(compare_gradients({"w"}, {numbers({1, 2})}, {numbers({1, 2})}), "bitwise");
  const double next = std::nextafter(2.0, 3.0);
  EXPECT_THAT(
      compare_gradients({"a", "w"}, {numbers({1}), numbers({1, 2})}, {numbers({1}), numbers({1, next})}),
      HasSubstr("1 of 2 parameters differ; w differs by up to"));
  EXPECT_NE(compare_gradients({"w"}, {numbers({0.0})}, {numbers({-0.0})}), "bitwise");
}

/// A plain pass of one parameter. Its calls return these gradients in turn, and then the last one forever.
class Passes {
 public:
  explicit Passes(std::vector<double> gradients) : gradients_(std::move(gradients)) {}

  GradientReference reference() {
    return {{"a", "w"}, [this] {
              const std::size_t pass = std::min(made_++, gradients_.size() - 1);
              return std::vector{numbers({1}), numbers({gradients_[pass]})};
            }};
  }
  std::size_t made() const { return made_; }

 private:
  std::vector<double> gradients_;
  std::size_t made_ = 0;
};

std::string verdict_on(GradientReference& reference, double gradient) {
  return reference.check({numbers({1}), numbers({gradient})}, /*may_lose=*/false).verdict;
}

TEST(GradientReference, IsBitwiseIfNothingDiffers) {
  Passes passes({2});
  GradientReference reference = passes.reference();
  EXPECT_EQ(verdict_on(reference, 2), "bitwise");
  EXPECT_EQ(verdict_on(reference, 2), "bitwise");
  EXPECT_EQ(passes.made(), 2U) << "plain passes serve all checks";
}

TEST(GradientReference, ReportsTheDifferenceOfPlainPasses) {
  Passes passes({2, 2.5});
  GradientReference reference = passes.reference();
  EXPECT_EQ(
      verdict_on(reference, 2.25),
      "not reproducible without offloading, by up to 0.5 in 1 of 2 parameters; with it by up to 0.25 in 1");
  EXPECT_TRUE(gradients_pass(verdict_on(reference, 2.25)));
}

TEST(GradientReference, FindsADifferenceIfPlainPassesAgree) {
  Passes passes({2});
  GradientReference reference = passes.reference();
  EXPECT_EQ(verdict_on(reference, 2.5), "1 of 2 parameters differ; w differs by up to 0.5");
  EXPECT_FALSE(gradients_pass(verdict_on(reference, 2.5)));
}

TEST(GradientReference, FindsADifferenceBesideAParameterThatIsNotReproducible) {
  Passes passes({2, 2.5});
  GradientReference reference = passes.reference();
  EXPECT_THAT(reference.check({numbers({1.5}), numbers({2.25})}, false).verdict,
              HasSubstr("a differs by up to 0.5"));
}

TEST(GradientReference, FindsADifferenceBeyondThatOfPlainPasses) {
  Passes passes({2, 2.5});
  GradientReference reference = passes.reference();
  EXPECT_FALSE(gradients_pass(verdict_on(reference, 20)));
  EXPECT_FALSE(gradients_pass(verdict_on(reference, std::numeric_limits<double>::quiet_NaN())));
}

TEST(GradientReference, RunsMorePassesIfTwoAgreeByChance) {
  Passes passes({2, 2, 2, 2.5});
  GradientReference reference = passes.reference();
  EXPECT_THAT(verdict_on(reference, 2.5), HasSubstr("not reproducible"));
  EXPECT_EQ(passes.made(), 4U);
}

TEST(GradientReference, ReportsTheErrorsOfALossyPolicy) {
  Passes passes({2});
  GradientReference reference = passes.reference();
  const GradientCheck check = reference.check({numbers({1}), numbers({2.5})}, /*may_lose=*/true);
  EXPECT_EQ(check.verdict, "lossy");
  EXPECT_EQ(check.errors.at(1).max_abs, 0.5);
}

}  // namespace
}  // namespace offprof

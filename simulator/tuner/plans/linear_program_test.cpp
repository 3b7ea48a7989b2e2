#include "simulator/tuner/plans/linear_program.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace offprof {
namespace {

TEST(LinearProgram, FindsTheLeastCost) {
  LinearProgram program;
  const std::size_t x = program.add_column(1, 0, 1), y = program.add_column(2, 0, 1);
  program.add_row({{x, 1}, {y, 1}}, 1.5);
  ASSERT_TRUE(program.solve());
  EXPECT_NEAR(program.values()[x], 1, 1e-6);
  EXPECT_NEAR(program.values()[y], 0.5, 1e-6);
  EXPECT_NEAR(program.safe_bound(), 2, 1e-6);
  EXPECT_LE(program.safe_bound(), 2);
}

TEST(LinearProgram, ContinuesWithMoreRows) {
  LinearProgram program;
  const std::size_t x = program.add_column(1, 0, 10);
  ASSERT_TRUE(program.solve());
  EXPECT_NEAR(program.values()[x], 0, 1e-6);
  program.add_row({{x, 2}}, 7);
  ASSERT_TRUE(program.solve());
  EXPECT_NEAR(program.values()[x], 3.5, 1e-6);
  EXPECT_EQ(program.rows(), 1U);
}

TEST(LinearProgram, ReportsInfeasibility) {
  LinearProgram program;
  const std::size_t x = program.add_column(1, 0, 1);
  program.add_row({{x, 1}}, 2);
  EXPECT_FALSE(program.solve());
}

RC_GTEST_PROP(LinearProgramProperty, NoFeasiblePointCostsLessThanTheSafeBound, ()) {
  const std::size_t columns = *rc::gen::inRange<std::size_t>(1, 6);
  const auto number = rc::gen::map(rc::gen::inRange(-50, 51), [](int n) { return n / 10.0; });
  const auto share = rc::gen::map(rc::gen::inRange(0, 101), [](int n) { return n / 100.0; });
  LinearProgram program;
  std::vector<double> point;
  double cost = 0;
  for (std::size_t j = 0; j < columns; ++j) {
    const double column_cost = *number;
    program.add_column(column_cost, -1, 2);
    point.push_back(3 * *share - 1);
    cost += column_cost * point.back();
  }
  for (int i = *rc::gen::inRange(0, 8); i > 0; --i) {
    LinearProgram::Terms terms;
    double sum = 0;
    for (std::size_t j = 0; j < columns; ++j) {
      terms.emplace_back(j, *number);
      sum += terms.back().second * point[j];
    }
    program.add_row(terms, sum - *share);
  }
  program.solve();
  RC_ASSERT(program.safe_bound() <= cost + 1e-9);
}

}  // namespace
}  // namespace offprof

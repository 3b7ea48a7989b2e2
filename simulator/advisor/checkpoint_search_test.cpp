#include "simulator/advisor/checkpoint_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace offprof {
namespace {

/// Searches for a rank that is the distance from `minimum`, and counts the values of k that are tried.
class Search {
 public:
  explicit Search(std::size_t modules, std::size_t minimum) : minimum_(minimum) {
    std::map<std::size_t, GoalRank> known = {{0, rank(0)}, {modules, rank(modules)}};
    best_ = best_checkpoint_count(modules, known, [this](const std::vector<std::size_t>& counts) {
      std::vector<GoalRank> ranks;
      for (const std::size_t count : counts) {
        tried_.push_back(count);
        ranks.push_back(rank(count));
      }
      return ranks;
    });
  }

  std::size_t best() const { return best_; }
  const std::vector<std::size_t>& tried() const { return tried_; }

 private:
  GoalRank rank(std::size_t count) const {
    return {0, 0, std::abs(static_cast<std::int64_t>(count) - static_cast<std::int64_t>(minimum_)), 0};
  }

  std::size_t minimum_, best_ = 0;
  std::vector<std::size_t> tried_;
};

TEST(CheckpointSearch, FindsTheMinimumWhereverItIs) {
  for (std::size_t minimum = 0; minimum <= 32; ++minimum) EXPECT_EQ(Search(32, minimum).best(), minimum);
}

TEST(CheckpointSearch, TriesNoCountTwice) {
  for (std::size_t minimum = 0; minimum <= 32; ++minimum) {
    std::vector<std::size_t> tried = Search(32, minimum).tried();
    std::ranges::sort(tried);
    EXPECT_EQ(std::ranges::adjacent_find(tried), tried.end()) << minimum;
    EXPECT_THAT(tried, testing::Each(testing::AllOf(testing::Gt(0U), testing::Lt(32U))));
  }
}

TEST(CheckpointSearch, TriesFewOfManyCounts) {
  for (std::size_t minimum = 0; minimum <= 80; ++minimum) EXPECT_LE(Search(80, minimum).tried().size(), 14U);
}

TEST(CheckpointSearch, TriesTheOnlyCountBetweenNoneAndBothModules) {
  EXPECT_THAT(Search(2, 1).tried(), testing::ElementsAre(1U));
  EXPECT_EQ(Search(2, 1).best(), 1U);
}

TEST(CheckpointedWithin, EachModuleAddsTheSame) {
  EXPECT_EQ(checkpointed_within(1100, 4, 1000, 1118), 3);
  EXPECT_EQ(checkpointed_within(1100, 4, 1000, 1134), 2);
}

TEST(CheckpointedWithin, IsNoneOrAllBeyondTheEnds) {
  EXPECT_EQ(checkpointed_within(1000, 4, 1000, 1100), 0);
  EXPECT_EQ(checkpointed_within(900, 4, 1000, 1100), 0);
  EXPECT_EQ(checkpointed_within(1100, 4, 1000, 1100), 4);
  EXPECT_EQ(checkpointed_within(1100, 4, 1000, 1000), 4) << "checkpointing may be free";
}

}  // namespace
}  // namespace offprof

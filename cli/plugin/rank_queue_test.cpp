#include "cli/plugin/rank_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using testing::ElementsAre;

struct RankQueueTest : testing::Test {
  std::vector<int> ranks_of(std::vector<int> named, int world_size) const {
    RankQueue queue(std::move(named), world_size, folder.path());
    std::vector<int> ranks;
    while (const auto rank = queue.next()) ranks.push_back(*rank);
    return ranks;
  }
  void partners(int rank, const std::string& text) const {
    std::ofstream(folder / ("partners-" + std::to_string(rank))) << text;
  }

  TestFolder folder;
};

TEST_F(RankQueueTest, RunsTheRanksThatTheUserNames) {
  partners(3, "4\n");
  EXPECT_THAT(ranks_of({3, 0}, 8), ElementsAre(3, 0));
}

TEST_F(RankQueueTest, TheFirstAndTheLastRankAreRepresentative) {
  EXPECT_THAT(ranks_of({}, 8), ElementsAre(0, 7));
  EXPECT_THAT(ranks_of({}, 1), ElementsAre(0));
}

TEST_F(RankQueueTest, FollowsTheStagesOfAPipeline) {
  partners(0, "4\n");
  partners(4, "8\n0\n");
  partners(8, "4\n");
  EXPECT_THAT(ranks_of({}, 12), ElementsAre(0, 4, 8, 11));
}

TEST_F(RankQueueTest, RunsALimitedNumberOfRanks) {
  for (int rank = 0; rank < 99; ++rank) partners(rank, std::to_string(rank + 1));
  const std::vector<int> ranks = ranks_of({}, 200);
  EXPECT_EQ(ranks.size(), kMostAutomaticRanks);
  EXPECT_EQ(ranks.back(), 199);
}

}  // namespace
}  // namespace offprof

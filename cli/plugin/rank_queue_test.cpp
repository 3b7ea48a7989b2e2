#include "cli/plugin/rank_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"

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

struct WaitingRanksTest : RankQueueTest {
  void waits(int rank, int needed) const {
    std::ofstream(folder / ("waits-" + std::to_string(rank))) << needed;
  }
  void says(const std::string& key) const { std::ofstream(folder / key) << "object"; }
  std::string to_come() const {
    std::ifstream file(folder / "to-come");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(WaitingRanksTest, ARankBeginsAnewAfterTheOneThatItNeeds) {
  RankQueue queue({0, 1, 2}, 3, folder.path());
  EXPECT_EQ(queue.next(), 0);
  EXPECT_EQ(to_come(), "1\n2\n");
  waits(0, 2);
  queue.put_back();
  EXPECT_EQ(queue.next(), 2);
  EXPECT_EQ(to_come(), "0\n1\n");
  EXPECT_EQ(queue.next(), 0);
  EXPECT_EQ(queue.next(), 1);
  EXPECT_EQ(to_come(), "");
  EXPECT_EQ(queue.next(), std::nullopt);
}

TEST_F(WaitingRanksTest, RanksThatWaitForEachOtherGoOnWhileTheySaySomething) {
  RankQueue queue({}, 8, folder.path());
  EXPECT_EQ(queue.next(), 0);
  says("forward");
  waits(0, 4);
  queue.put_back();
  EXPECT_EQ(queue.next(), 4);
  says("gradient");
  waits(4, 0);
  queue.put_back();
  EXPECT_EQ(queue.next(), 0);
  EXPECT_EQ(queue.next(), 4);
  EXPECT_EQ(queue.next(), 7);
  EXPECT_EQ(queue.next(), std::nullopt);
}

TEST_F(WaitingRanksTest, RanksThatSayNothingAreNotRunForEver) {
  RankQueue queue({0, 1}, 2, folder.path());
  waits(0, 1);
  waits(1, 0);
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(queue.next().has_value());
    queue.put_back();
  }
  EXPECT_EQ(queue.next(), 0);
  EXPECT_THROW(queue.put_back(), Error);
}

}  // namespace
}  // namespace offprof

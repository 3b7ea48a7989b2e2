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
using testing::HasSubstr;
using testing::ThrowsMessage;

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

TEST_F(RankQueueTest, TheLastRankComesWithoutItsPartners) {
  partners(0, "2\n");
  partners(7, "5\n");
  EXPECT_THAT(ranks_of({}, 8), ElementsAre(0, 2, 7));
}

TEST_F(RankQueueTest, FollowsAllStagesWhereTheLastOneSendsToTheFirst) {
  partners(0, "1\n3\n");
  partners(1, "0\n2\n");
  EXPECT_THAT(ranks_of({}, 4), ElementsAre(0, 1, 3, 2));
}

struct WaitingRanksTest : RankQueueTest {
  /// The rank that the queue has given last ends, and waits for what another one says under the key.
  void waits(RankQueue& queue, int rank, int needed, const std::string& key) const {
    std::ofstream(folder / ("waits-" + std::to_string(rank))) << needed << " " << key;
    queue.put_back();
  }
  void says(const std::string& key) const { std::ofstream(folder / key) << "object"; }
  std::string to_come() const {
    std::ifstream file(folder / "to-come");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(WaitingRanksTest, ARankBeginsAnewAfterTheOneThatItNeeds) {
  RankQueue queue({0, 2, 1}, 3, folder.path());
  EXPECT_EQ(queue.next(), 0);
  EXPECT_EQ(to_come(), "1\n2\n");
  waits(queue, 0, 2, "object");
  EXPECT_EQ(queue.next(), 2);
  EXPECT_EQ(to_come(), "0\n1\n");
  says("object");
  EXPECT_EQ(queue.next(), 0);
  EXPECT_EQ(queue.next(), 1);
  EXPECT_EQ(to_come(), "");
  EXPECT_EQ(queue.next(), std::nullopt);
}

TEST_F(WaitingRanksTest, KnowsTheRanksThatHaveNotRun) {
  RankQueue queue({0, 2, 1}, 3, folder.path());
  EXPECT_THAT(queue.left(), ElementsAre(0, 2, 1));
  queue.next();
  EXPECT_THAT(queue.left(), ElementsAre(2, 1));
}

TEST_F(WaitingRanksTest, RanksThatWaitForEachOtherGoOnWhileTheySaySomething) {
  RankQueue queue({}, 8, folder.path());
  EXPECT_EQ(queue.next(), 0);
  says("forward");
  waits(queue, 0, 4, "gradient");
  EXPECT_EQ(queue.next(), 4);
  says("gradient");
  waits(queue, 4, 0, "loss");
  EXPECT_EQ(queue.next(), 0);
  says("loss");
  EXPECT_EQ(queue.next(), 4);
  EXPECT_EQ(queue.next(), 7);
  EXPECT_EQ(queue.next(), std::nullopt);
}

/// Two rounds over three ranks, as of a pipeline with two stages on each: no rank begins anew in vain.
TEST_F(WaitingRanksTest, ARankBeginsAnewOnlyWhenWhatItNeedsHasBeenSaid) {
  RankQueue queue({0, 1, 2}, 3, folder.path());
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(queue.next(), rank);
    says("stage" + std::to_string(rank));
    waits(queue, rank, (rank + 2) % 3, "stage" + std::to_string(rank + 2));
  }
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(queue.next(), rank);
    says("stage" + std::to_string(rank + 3));
  }
  EXPECT_EQ(queue.next(), std::nullopt);
}

TEST_F(WaitingRanksTest, RanksThatSayNothingAreNotRunForEver) {
  RankQueue queue({0, 1}, 2, folder.path());
  EXPECT_EQ(queue.next(), 0);
  waits(queue, 0, 1, "a");
  EXPECT_EQ(queue.next(), 1);
  waits(queue, 1, 0, "b");
  EXPECT_THAT([&] { queue.next(); },
              ThrowsMessage<Error>(HasSubstr(
                  "rank 1 waits for an object that rank 0 sends, and that one for an object of rank 1")));
}

TEST_F(WaitingRanksTest, AnObjectThatIsNeverSentIsNamed) {
  RankQueue queue({0, 1}, 2, folder.path());
  EXPECT_EQ(queue.next(), 0);
  waits(queue, 0, 1, "a");
  EXPECT_EQ(queue.next(), 1);
  EXPECT_THAT([&] { queue.next(); }, ThrowsMessage<Error>(HasSubstr("has ended without sending it")));
}

TEST_F(RankQueueTest, ARankNeedsThoseThatItHasHeardAndThoseThatTheyHave) {
  std::ofstream(folder / "heard-2") << "1\n1\n";
  std::ofstream(folder / "heard-1") << "0\n2\n";
  EXPECT_THAT(ranks_heard_by(2, folder.path()), ElementsAre(0, 1, 2));
  EXPECT_THAT(ranks_heard_by(3, folder.path()), ElementsAre(3));
}

}  // namespace
}  // namespace offprof

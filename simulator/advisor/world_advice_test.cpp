#include "simulator/advisor/world_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A job whose ranks fit from `least` ranks on, and that cannot be sharded to some sizes.
class WorldAdviceTest : public testing::Test {
 protected:
  WorldAdvice search(int least, std::vector<int> sizes = {1, 2, 4, 8, 16, 32, 64}) {
    return advise_world_size(std::move(sizes), [&](int world_size) {
      tried_.push_back(world_size);
      if (std::ranges::find(unsharded_, world_size) != unsharded_.end())
        throw input_error("the step cannot be recorded: 12 heads on " + std::to_string(world_size));
      RankAdvice found{world_size - 1, {}};
      found.advice.ways.push_back({.name = "offload all", .is_within = world_size >= least});
      return found;
    });
  }

  static std::vector<int> sizes_of(const WorldAdvice& advice) {
    std::vector<int> sizes;
    for (const WorldAttempt& attempt : advice.attempts) sizes.push_back(attempt.world_size);
    return sizes;
  }

  std::vector<int> unsharded_, tried_;
};

TEST_F(WorldAdviceTest, FindsTheLeastSizeByBisection) {
  for (const int least : {1, 2, 4, 8, 16, 32, 64}) {
    tried_.clear();
    const WorldAdvice advice = search(least);
    EXPECT_EQ(advice.best_attempt().world_size, least);
    EXPECT_TRUE(advice.best_attempt().is_within());
    EXPECT_LE(tried_.size(), 3U);
    EXPECT_TRUE(std::ranges::is_sorted(sizes_of(advice)));
  }
}

TEST_F(WorldAdviceTest, WithoutAnAnswerTheLargestIsTheNearest) {
  const WorldAdvice advice = search(100);
  EXPECT_EQ(advice.best_attempt().world_size, 64);
  EXPECT_FALSE(advice.best_attempt().is_within());
}

TEST_F(WorldAdviceTest, LeavesOutSizesThatTheModelCannotBeShardedTo) {
  unsharded_ = {8, 16};
  const WorldAdvice advice = search(4);
  EXPECT_EQ(advice.best_attempt().world_size, 4);
  const auto left_out = std::ranges::find(advice.attempts, 8, &WorldAttempt::world_size);
  ASSERT_NE(left_out, advice.attempts.end());
  EXPECT_THAT(left_out->failure, HasSubstr("12 heads on 8"));
}

TEST_F(WorldAdviceTest, TheNearestOneWasRecorded) {
  unsharded_ = {64};
  const WorldAdvice advice = search(100, {32, 64});
  EXPECT_THAT(sizes_of(advice), ElementsAre(32, 64));
  EXPECT_EQ(advice.best_attempt().world_size, 32);
}

TEST_F(WorldAdviceTest, ThrowsIfNoSizeCanBeRecorded) {
  unsharded_ = {1, 2};
  try {
    search(1, {1, 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the step cannot be recorded: 12 heads on 2"));
  }
}

}  // namespace
}  // namespace offprof

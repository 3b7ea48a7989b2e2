#include "engine/copies/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(SplitCores, GivesOneCoreToCopiesAndTheOthersToCompute) {
  const CoreSplit split = split_cores({0, 2, 5}, 2, 0);
  EXPECT_THAT(split.copies, ElementsAre(0));
  EXPECT_THAT(split.compute, ElementsAre(2, 5));
}

TEST(SplitCores, GivesDifferentCoresToDifferentProcesses) {
  EXPECT_THAT(split_cores({0, 2, 5}, 1, 31).copies, ElementsAre(2));
  EXPECT_THAT(split_cores({0, 2, 5}, 1, 32).copies, ElementsAre(5));
  EXPECT_THAT(split_cores({0, 2, 5}, 1, 32).compute, ElementsAre(0, 2));
}

TEST(SplitCores, SharesAllCoresIfComputeNeedsAll) {
  const CoreSplit split = split_cores({0, 2, 5}, 3, 0);
  EXPECT_THAT(split.copies, ElementsAre(0, 2, 5));
  EXPECT_THAT(split.compute, ElementsAre(0, 2, 5));
}

TEST(StayOn, AppliesToTheThreadAndToThreadsItStarts) {
  const std::vector<int> before = allowed_cores();
  ASSERT_THAT(before, Not(IsEmpty()));
  std::vector<int> own, started;
  std::thread([&] {
    stay_on({before.back()});
    own = allowed_cores();
    std::thread([&] { started = allowed_cores(); }).join();
  }).join();
  EXPECT_THAT(own, ElementsAre(before.back()));
  EXPECT_THAT(started, ElementsAre(before.back()));
  EXPECT_EQ(allowed_cores(), before);
}

}  // namespace
}  // namespace offprof

#include "simulator/tuner/settings/family_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace offprof {
namespace {

using testing::Contains;
using testing::ElementsAre;

std::vector<MovableVersion> versions_of(const std::vector<Bytes>& sizes) {
  std::vector<MovableVersion> versions;
  for (const Bytes bytes : sizes) versions.push_back({static_cast<std::int64_t>(versions.size()), bytes, {}});
  return versions;
}

std::vector<MovableVersion> many_sizes(int count) {
  std::vector<Bytes> sizes;
  for (int i = 0; i < count; ++i) sizes.push_back(1000 + i);
  return versions_of(sizes);
}

std::set<Bytes> thresholds(const FamilyRanges& family) {
  std::set<Bytes> thresholds;
  for (const SettingRange& range : family.ranges) thresholds.insert(*range.base.threshold_bytes);
  return thresholds;
}

TEST(FamilyRanges, EverySizeIsAThreshold) {
  const FamilyRanges family = family_ranges(versions_of({220, 100, 160, 100}), {}, 1000);
  EXPECT_TRUE(family.is_whole);
  EXPECT_THAT(thresholds(family), ElementsAre(100, 160, 220));
}

TEST(FamilyRanges, HasNoStashLargerThanItsCopies) {
  for (const SettingRange& range : family_ranges(versions_of({100, 100, 50}), {}, 1000).ranges) {
    if (range.unit == StashUnit::kCopies) {
      EXPECT_EQ(range.last_stash, range.base.threshold_bytes == 50 ? 3 : 2);
    }
  }
}

TEST(FamilyRanges, UsesFewOfTooManySizesAndReportsIt) {
  const FamilyRanges family = family_ranges(many_sizes(200), {}, 1000);
  EXPECT_FALSE(family.is_whole);
  EXPECT_LE(thresholds(family).size(), 30U);
  EXPECT_THAT(thresholds(family), Contains(1000));  // moves all
  EXPECT_THAT(thresholds(family), Contains(1199));  // moves only the largest
}

TEST(FamilyRanges, CountsTheSettingsWithDifferentEffects) {
  // One copy: no stash or a stash of one, on demand or ahead. Two copies: three stashes, three windows.
  EXPECT_EQ(family_ranges(versions_of({100}), {}, 1000).settings, 2 * 2);
  EXPECT_EQ(family_ranges(versions_of({100, 100}), {}, 1000).settings, 3 * 3);
}

TEST(FamilyRanges, IsEmptyIfNothingMayMove) {
  EXPECT_TRUE(family_ranges({}, {}, 1000).ranges.empty());
  EXPECT_TRUE(coarse_grid({}, {}).empty());
}

TEST(FamilyRanges, HasOneThresholdIfMovableTensorsHaveNoBytes) {
  EXPECT_THAT(thresholds(family_ranges(versions_of({0, 0}), {}, 1000)), ElementsAre(0));
  for (const Policy& policy : coarse_grid(versions_of({0, 0}), {})) EXPECT_EQ(policy.threshold_bytes, 0);
}

TEST(CoarseGrid, IsASampleIfItIsTooLarge) {
  const auto all = coarse_grid(many_sizes(40), {}), some = coarse_grid(many_sizes(40), {}, 50);
  EXPECT_GT(all.size(), 50U);
  ASSERT_EQ(some.size(), 50U);
  EXPECT_NE(some.front().threshold_bytes, some.back().threshold_bytes);
}

TEST(CoarseGrid, WindowsGoFromTheLargestCopyToTheSumOfAllCopies) {
  std::set<Bytes> windows;
  for (const Policy& policy : coarse_grid(versions_of({100, 100, 100}), {}))
    windows.insert(policy.prefetch_bytes);
  EXPECT_THAT(windows, ElementsAre(0, 100, 200, 300));
}

TEST(CoarseGrid, StashesGrowToOneThatNeverFills) {
  std::set<std::int64_t> stashes;
  for (const Policy& policy : coarse_grid(versions_of({100, 100, 100, 100}), {}))
    stashes.insert(*policy.stash_count);
  EXPECT_THAT(stashes, ElementsAre(0, 1, 2, 3, 4));
}

TEST(CoarseGrid, GivesEveryPolicyTheHostCap) {
  Policy base;
  base.host_memory_bytes = 150;
  for (const Policy& policy : coarse_grid(many_sizes(5), base)) EXPECT_EQ(policy.host_memory_bytes, 150);
}

}  // namespace
}  // namespace offprof

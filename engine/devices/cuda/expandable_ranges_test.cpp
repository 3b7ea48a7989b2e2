#include "engine/devices/cuda/expandable_ranges.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

constexpr Bytes kDevice = 80 * kMiB;  // so a range has 90 MiB, rounded up to 100 MiB in granules of 20 MiB
constexpr Bytes kGranule = 20 * kMiB;
constexpr std::uintptr_t kBegin = 7 * kGranule;

TEST(ExpandableRanges, BeginAtTheFirstMappedAddress) {
  ExpandableRanges ranges(kDevice);
  EXPECT_EQ(ranges.begin_of(kBegin), std::nullopt);
  ranges.map(kBegin, kGranule);
  ranges.map(kBegin + kGranule, 2 * kGranule);
  EXPECT_EQ(ranges.begin_of(kBegin), kBegin);
  EXPECT_EQ(ranges.begin_of(kBegin + 3 * kGranule - 1), kBegin);
}

TEST(ExpandableRanges, KeepTheirBeginAfterItIsUnmapped) {
  ExpandableRanges ranges(kDevice);
  ranges.map(kBegin, 3 * kGranule);
  ranges.unmap(kBegin, 2 * kGranule);
  EXPECT_EQ(ranges.begin_of(kBegin + 2 * kGranule), kBegin);
}

TEST(ExpandableRanges, EndWhenNothingIsMapped) {
  ExpandableRanges ranges(kDevice);
  ranges.map(kBegin, 3 * kGranule);
  ranges.unmap(kBegin + kGranule, kGranule);
  ranges.unmap(kBegin, kGranule);
  ranges.unmap(kBegin + 2 * kGranule, kGranule);
  EXPECT_EQ(ranges.begin_of(kBegin), std::nullopt);
  ranges.map(kBegin + kGranule, kGranule);
  EXPECT_EQ(ranges.begin_of(kBegin + kGranule), kBegin + kGranule);
}

TEST(ExpandableRanges, ReachAnEighthBeyondTheDeviceMemory) {
  ExpandableRanges ranges(kDevice);
  ranges.map(kBegin, kGranule);
  ranges.map(kBegin + 4 * kGranule, kGranule);
  EXPECT_EQ(ranges.begin_of(kBegin + 4 * kGranule), kBegin);
  ranges.map(kBegin + 5 * kGranule, kGranule);
  EXPECT_EQ(ranges.begin_of(kBegin + 5 * kGranule), kBegin + 5 * kGranule);
}

TEST(ExpandableRanges, IgnoreMemoryMappedBeforeTheRecords) {
  ExpandableRanges ranges(kDevice);
  ranges.unmap(kBegin, kGranule);
  EXPECT_EQ(ranges.begin_of(kBegin), std::nullopt);
}

}  // namespace
}  // namespace offprof

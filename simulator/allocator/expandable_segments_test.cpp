#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/allocator/allocator_layout.h"
#include "simulator/allocator/caching_allocator.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

CachingAllocator expandable(DeviceLimits limits = {}) {
  return CachingAllocator(parse_allocator_settings("expandable_segments:True"), limits);
}

TEST(ExpandableSegments, MapSmallBlocksByTwoAndLargeBlocksByTwentyMebibytes) {
  CachingAllocator allocator = expandable();
  allocator.allocate(512);
  allocator.allocate(24 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 small 0: 512a 2096640", "+0 large 0: 25165824a 16777216"));
}

TEST(ExpandableSegments, GrowAtTheirEnd) {
  CachingAllocator allocator = expandable();
  allocator.allocate(15 * kMiB);
  allocator.allocate(30 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 large 0: 15728640a 31457280a 15728640"));
  EXPECT_EQ(allocator.counters().reserved.current, 60 * kMiB);
}

TEST(ExpandableSegments, SplitLargeBlocksToTheRequestedSize) {
  CachingAllocator allocator = expandable();
  allocator.allocate(20 * kMiB - 512);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 large 0: 20971008a 512"));
}

TEST(ExpandableSegments, AreOnePerStreamAndPool) {
  CachingAllocator allocator = expandable();
  allocator.allocate(20 * kMiB, 0);
  allocator.allocate(20 * kMiB, 1);
  allocator.allocate(20 * kMiB, 0);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 large 0: 20971520a 20971520a", "+0 large 1: 20971520a"));
}

TEST(ExpandableSegments, UnmapTheGranulesInsideFreeBlocks) {
  CachingAllocator allocator = expandable();
  const auto first = allocator.allocate(30 * kMiB);
  const auto second = allocator.allocate(40 * kMiB);
  allocator.allocate(10 * kMiB);
  allocator.free(second);
  allocator.empty_cache();
  EXPECT_THAT(layout(allocator),
              ElementsAre("+62914560 large 0: 10485760 10485760a", "+0 large 0: 31457280a 10485760"));
  EXPECT_EQ(allocator.counters().reserved.current, 60 * kMiB);
  allocator.free(first);
}

TEST(ExpandableSegments, FillHolesAtTheLowestAddressThatHasRoom) {
  CachingAllocator allocator = expandable();
  const auto first = allocator.allocate(40 * kMiB);
  allocator.allocate(20 * kMiB);
  allocator.free(first);
  allocator.empty_cache();
  EXPECT_THAT(layout(allocator), ElementsAre("+41943040 large 0: 20971520a"));
  allocator.allocate(30 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 large 0: 31457280a 10485760 20971520a"));
}

TEST(ExpandableSegments, SkipAHoleThatIsTooSmall) {
  CachingAllocator allocator = expandable();
  const auto first = allocator.allocate(20 * kMiB);
  allocator.allocate(20 * kMiB);
  allocator.free(first);
  allocator.empty_cache();
  allocator.allocate(30 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("+20971520 large 0: 20971520a 31457280a 10485760"));
}

TEST(ExpandableSegments, ExtendAFreeBlockIntoUnmappedAddresses) {
  CachingAllocator allocator = expandable();
  allocator.allocate(10 * kMiB);
  allocator.allocate(45 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 large 0: 10485760a 47185920a 5242880"));
}

TEST(ExpandableSegments, PreferAFreeBlockThatCanGrowLess) {
  CachingAllocator allocator = expandable();
  const auto first = allocator.allocate(30 * kMiB);
  allocator.allocate(10 * kMiB);
  const auto last = allocator.allocate(20 * kMiB);
  allocator.free(first);
  allocator.free(last);
  allocator.allocate(15 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 large 0: 15728640a 15728640 10485760a 20971520"))
      << "the block of 20 MiB fits better but lies at the end";
}

TEST(ExpandableSegments, DropTheirAddressesWhenEverythingIsUnmapped) {
  CachingAllocator allocator = expandable();
  allocator.free(allocator.allocate(30 * kMiB));
  allocator.empty_cache();
  EXPECT_THAT(layout(allocator), IsEmpty());
  EXPECT_EQ(allocator.counters().reserved.current, 0);
  allocator.allocate(30 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 large 0: 31457280a 10485760"));
}

TEST(ExpandableSegments, ReserveAnotherRangeWhenTheFirstIsFull) {
  CachingAllocator allocator = expandable({.total = 160 * kMiB});
  allocator.allocate(180 * kMiB);  // the range is an eighth larger than the device
  allocator.allocate(20 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 large 0: 188743680a", "+0 large 0: 20971520a"));
}

TEST(ExpandableSegments, UnmapFreeMemoryWhenTheDeviceIsFull) {
  CachingAllocator allocator = expandable({.capacity = 60 * kMiB});
  allocator.free(allocator.allocate(40 * kMiB, 0));
  allocator.allocate(40 * kMiB, 1);
  EXPECT_THAT(layout(allocator), ElementsAre("+0 large 1: 41943040a"));
  EXPECT_EQ(allocator.counters().retries, 1);
  EXPECT_THROW(allocator.allocate(40 * kMiB, 1), AllocatorOutOfMemory);
}

}  // namespace
}  // namespace offprof

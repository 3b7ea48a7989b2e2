#include "simulator/allocator/caching_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "simulator/allocator/allocator_layout.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

CachingAllocator allocator_with(const std::string& settings, DeviceLimits limits = {}) {
  return CachingAllocator(parse_allocator_settings(settings), limits);
}

TEST(CachingAllocator, PacksSmallBlocksIntoSegmentsOfTwoMebibytes) {
  CachingAllocator allocator(AllocatorSettings{});
  allocator.allocate(1);
  allocator.allocate(1000);
  EXPECT_THAT(layout(allocator), ElementsAre("small 0: 512a 1024a 2095616"));
}

TEST(CachingAllocator, CutsBlocksUnderTenMebibytesFromLargeSegments) {
  CachingAllocator allocator(AllocatorSettings{});
  allocator.allocate(4 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 4194304a 16777216"));
}

TEST(CachingAllocator, GivesBlocksFromTenMebibytesOnASegmentOfTheirOwn) {
  CachingAllocator allocator(AllocatorSettings{});
  allocator.allocate(11 * kMiB + 1);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 12582912a"));
}

TEST(CachingAllocator, SplitsALargeBlockOnlyIfMoreThanAMebibyteIsLeft) {
  CachingAllocator allocator(AllocatorSettings{});
  allocator.allocate(11 * kMiB);
  allocator.allocate(11 * kMiB - 512);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 12582912a", "large 0: 11533824a 1049088"));
}

TEST(CachingAllocator, SplitsASmallBlockIfAnythingIsLeft) {
  CachingAllocator allocator(AllocatorSettings{});
  allocator.allocate(kMiB);
  allocator.allocate(kMiB - 512);
  EXPECT_THAT(layout(allocator), ElementsAre("small 0: 1048576a 1048064a 512"));
}

TEST(CachingAllocator, TakesTheSmallestBlockThatFits) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto larger = allocator.allocate(40 * kMiB);
  const auto smaller = allocator.allocate(30 * kMiB);
  allocator.free(larger);
  allocator.free(smaller);
  allocator.allocate(24 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 41943040", "large 0: 25165824a 6291456"));
}

TEST(CachingAllocator, TakesTheLowestAddressOfEqualBlocks) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto high = allocator.allocate(30 * kMiB);
  const auto low = allocator.allocate(30 * kMiB);
  allocator.free(low);
  allocator.free(high);
  allocator.allocate(30 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 31457280", "large 0: 31457280a"));
}

TEST(CachingAllocator, MergesFreedBlocksWithBothNeighbours) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto first = allocator.allocate(512);
  const auto second = allocator.allocate(512);
  const auto third = allocator.allocate(512);
  allocator.free(first);
  EXPECT_THAT(layout(allocator), ElementsAre("small 0: 512 512a 512a 2095616"));
  allocator.free(third);
  EXPECT_THAT(layout(allocator), ElementsAre("small 0: 512 512a 2096128"));
  allocator.free(second);
  EXPECT_THAT(layout(allocator), ElementsAre("small 0: 2097152"));
}

TEST(CachingAllocator, NeverGivesABlockOfOneStreamToAnother) {
  CachingAllocator allocator(AllocatorSettings{});
  allocator.free(allocator.allocate(40 * kMiB, 0));
  allocator.allocate(40 * kMiB, 1);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 41943040", "large 1: 41943040a"));
}

TEST(CachingAllocator, NeverServesASmallRequestFromTheLargePool) {
  CachingAllocator allocator(AllocatorSettings{});
  allocator.free(allocator.allocate(4 * kMiB));
  allocator.allocate(512);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 20971520", "small 0: 512a 2096640"));
}

TEST(CachingAllocator, DoesNotSplitOversizeBlocks) {
  auto allocator = allocator_with("max_split_size_mb:64");
  allocator.free(allocator.allocate(80 * kMiB));
  allocator.allocate(63 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 83886080", "large 0: 67108864a"))
      << "a smaller request does not take the oversize block";
  allocator.allocate(70 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 83886080a", "large 0: 67108864a"))
      << "an oversize request takes the whole block";
}

TEST(CachingAllocator, WastesAtMostTheRoundingOnAnOversizeBlock) {
  auto allocator = allocator_with("max_split_size_mb:64,max_non_split_rounding_mb:32");
  allocator.free(allocator.allocate(96 * kMiB));
  allocator.allocate(64 * kMiB);
  EXPECT_EQ(allocator.counters().segments, 2);
  allocator.allocate(64 * kMiB + 512);
  EXPECT_EQ(allocator.counters().segments, 2);
}

TEST(CachingAllocator, RoundsSizesUpToDivisions) {
  auto allocator = allocator_with("roundup_power2_divisions:4");
  EXPECT_EQ(allocator.block_bytes(allocator.allocate(33 * kMiB)), 40 * kMiB);
}

TEST(CachingAllocator, CountsRequestedAllocatedActiveAndReservedBytes) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto block = allocator.allocate(700);
  allocator.allocate(11 * kMiB + 3);
  allocator.free(block);
  const AllocatorCounters& counters = allocator.counters();
  EXPECT_EQ(counters.requested, (PeakedBytes{11 * kMiB + 3, 11 * kMiB + 703}));
  EXPECT_EQ(counters.allocated, (PeakedBytes{12 * kMiB, 12 * kMiB + 1024}));
  EXPECT_EQ(counters.active, (PeakedBytes{12 * kMiB, 12 * kMiB + 1024}));
  EXPECT_EQ(counters.reserved, (PeakedBytes{14 * kMiB, 14 * kMiB}));
  EXPECT_EQ(counters.segments, 2);
}

TEST(CachingAllocator, ResetsPeaksToTheCurrentValues) {
  CachingAllocator allocator(AllocatorSettings{});
  allocator.free(allocator.allocate(30 * kMiB));
  allocator.reset_peaks();
  EXPECT_EQ(allocator.counters().allocated, (PeakedBytes{0, 0}));
  EXPECT_EQ(allocator.counters().reserved, (PeakedBytes{30 * kMiB, 30 * kMiB}));
}

TEST(CachingAllocator, FreesABlockUsedByAnotherStreamAtTheNextRequest) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto block = allocator.allocate(30 * kMiB);
  allocator.record_stream(block, 1);
  allocator.free(block);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 31457280w"));
  EXPECT_EQ(allocator.counters().allocated.current, 0);
  EXPECT_EQ(allocator.counters().active.current, 30 * kMiB);
  EXPECT_EQ(allocator.counters().requested.current, 30 * kMiB);
  allocator.allocate(30 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 31457280a"));
}

TEST(CachingAllocator, HoldsABlockWhoseFreeIsRequestedUntilItIsFreed) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto block = allocator.allocate(30 * kMiB);
  allocator.request_free(block);
  allocator.request_free(block);
  EXPECT_EQ(allocator.counters().allocated.current, 0);
  EXPECT_EQ(allocator.counters().requested.current, 30 * kMiB);
  allocator.allocate(20 * kMiB);
  EXPECT_THAT(layout(allocator), UnorderedElementsAre("large 0: 20971520a", "large 0: 31457280w"));
  allocator.free(block);
  EXPECT_EQ(allocator.counters().requested.current, 20 * kMiB);
  EXPECT_EQ(allocator.allocate(30 * kMiB), block);
}

TEST(CachingAllocator, IgnoresARecordOfTheBlocksOwnStream) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto block = allocator.allocate(30 * kMiB, 2);
  allocator.record_stream(block, 2);
  allocator.free(block);
  EXPECT_THAT(layout(allocator), ElementsAre("large 2: 31457280"));
}

// Events that are complete when a test says so.
class ManualEvents : public StreamEvents {
 public:
  void record(std::uint64_t event, std::int32_t stream) override { recorded.emplace_back(event, stream); }
  bool is_complete(std::uint64_t event) override { return complete.contains(event); }

  std::vector<std::pair<std::uint64_t, std::int32_t>> recorded;
  std::set<std::uint64_t> complete;
};

TEST(CachingAllocator, RecordsAnEventOnEachStreamThatUsedAFreedBlock) {
  CachingAllocator allocator(AllocatorSettings{});
  ManualEvents events;
  allocator.set_events(&events);
  const auto block = allocator.allocate(30 * kMiB);
  allocator.record_stream(block, 2);
  allocator.record_stream(block, 1);
  allocator.record_stream(block, 2);
  EXPECT_THAT(events.recorded, IsEmpty());
  allocator.free(block);
  EXPECT_THAT(events.recorded, ElementsAre(std::pair(0u, 2), std::pair(1u, 1)));
}

TEST(CachingAllocator, WaitsForAllEventsOfABlock) {
  CachingAllocator allocator(AllocatorSettings{});
  ManualEvents events;
  allocator.set_events(&events);
  const auto block = allocator.allocate(30 * kMiB);
  allocator.record_stream(block, 1);
  allocator.record_stream(block, 2);
  allocator.free(block);
  events.complete = {0};
  allocator.allocate(512);
  EXPECT_EQ(layout(allocator).front(), "large 0: 31457280w");
  events.complete = {0, 1};
  allocator.allocate(512);
  EXPECT_EQ(layout(allocator).front(), "large 0: 31457280");
}

TEST(CachingAllocator, StopsAtTheFirstIncompleteEventOfAStream) {
  CachingAllocator allocator(AllocatorSettings{});
  ManualEvents events;
  allocator.set_events(&events);
  for (const auto block : {allocator.allocate(30 * kMiB), allocator.allocate(40 * kMiB)}) {
    allocator.record_stream(block, 1);
    allocator.free(block);
  }
  events.complete = {1};
  allocator.allocate(512);
  EXPECT_THAT(layout(allocator),
              ElementsAre("large 0: 31457280w", "large 0: 41943040w", "small 0: 512a 2096640"));
}

TEST(CachingAllocator, DoesNotMergeABlockThatWaitsForEvents) {
  CachingAllocator allocator(AllocatorSettings{});
  ManualEvents events;
  allocator.set_events(&events);
  const auto first = allocator.allocate(512);
  const auto second = allocator.allocate(512);
  allocator.record_stream(first, 1);
  allocator.free(first);
  allocator.free(second);
  EXPECT_THAT(layout(allocator), ElementsAre("small 0: 512w 2096640"));
}

TEST(CachingAllocator, CopiesAreIndependent) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto block = allocator.allocate(30 * kMiB);
  CachingAllocator copy = allocator;
  copy.free(block);
  EXPECT_THAT(layout(copy), ElementsAre("large 0: 31457280"));
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 31457280a"));
}

}  // namespace
}  // namespace offprof

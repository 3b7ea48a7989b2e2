#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/allocator/allocator_layout.h"
#include "simulator/allocator/caching_allocator.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CachingAllocator allocator_with(const std::string& settings, DeviceLimits limits = {}) {
  return CachingAllocator(parse_allocator_settings(settings), limits);
}

TEST(CachingAllocatorRelease, EmptyingTheCacheFreesWholeSegmentsOnly) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto split = allocator.allocate(4 * kMiB);
  allocator.allocate(512);
  allocator.free(allocator.allocate(30 * kMiB));
  allocator.free(allocator.allocate(30 * kMiB, 1));
  allocator.empty_cache();
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 4194304a 16777216", "small 0: 512a 2096640"));
  allocator.free(split);
  allocator.empty_cache();
  EXPECT_EQ(allocator.counters().reserved.current, 2 * kMiB);
  EXPECT_EQ(allocator.counters().segments, 1);
}

TEST(CachingAllocatorRelease, EmptyingTheCacheWaitsForEvents) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto block = allocator.allocate(30 * kMiB);
  allocator.record_stream(block, 1);
  allocator.free(block);
  allocator.empty_cache();
  EXPECT_THAT(layout(allocator), IsEmpty());
}

TEST(CachingAllocatorRelease, FreesTheCacheWhenTheDeviceIsFull) {
  CachingAllocator allocator(AllocatorSettings{}, {.capacity = 64 * kMiB});
  allocator.free(allocator.allocate(40 * kMiB));
  allocator.allocate(50 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 52428800a"));
  EXPECT_EQ(allocator.counters().retries, 1);
  EXPECT_EQ(allocator.counters().reserved.peak, 50 * kMiB);
}

TEST(CachingAllocatorRelease, RunsOutOfMemoryIfFreeingTheCacheDoesNotHelp) {
  CachingAllocator allocator(AllocatorSettings{}, {.capacity = 64 * kMiB});
  allocator.allocate(4 * kMiB);
  try {
    allocator.allocate(50 * kMiB + 1);
    FAIL() << "there is no room";
  } catch (const AllocatorOutOfMemory& error) {
    EXPECT_EQ(error.requested_bytes, 50 * kMiB + 1);
    EXPECT_EQ(error.allocated_bytes, 4 * kMiB);
    EXPECT_EQ(error.reserved_bytes, 20 * kMiB);
    EXPECT_THAT(error.what(), HasSubstr("no room for 50.0 MiB"));
  }
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 4194304a 16777216"));
}

TEST(CachingAllocatorRelease, CountsTheDeviceInGranules) {
  auto allocator = allocator_with("large_segment_size_mb:21", {.capacity = 42 * kMiB});
  allocator.allocate(4 * kMiB);
  EXPECT_THROW(allocator.allocate(21 * kMiB), AllocatorOutOfMemory);
  EXPECT_EQ(allocator.counters().reserved.current, 21 * kMiB);
}

TEST(CachingAllocatorRelease, StaysWithinItsFractionOfTheDevice) {
  auto allocator = allocator_with("per_process_memory_fraction:0.5", {.total = 80 * kMiB});
  allocator.free(allocator.allocate(30 * kMiB));
  allocator.allocate(40 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 41943040a"));
  EXPECT_THROW(allocator.allocate(512), AllocatorOutOfMemory);
}

TEST(CachingAllocatorRelease, FreesOneOversizeBlockFirst) {
  auto allocator = allocator_with("max_split_size_mb:64", {.capacity = 200 * kMiB});
  allocator.free(allocator.allocate(100 * kMiB));
  allocator.free(allocator.allocate(40 * kMiB));
  allocator.allocate(64 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 41943040", "large 0: 67108864a"));
  EXPECT_EQ(allocator.counters().retries, 0);
}

TEST(CachingAllocatorRelease, FreesTheLargestOversizeBlocksIfNoneIsLargeEnough) {
  auto allocator = allocator_with("max_split_size_mb:64", {.capacity = 300 * kMiB});
  const auto first = allocator.allocate(70 * kMiB);
  const auto second = allocator.allocate(90 * kMiB);
  const auto third = allocator.allocate(80 * kMiB);
  for (const auto block : {first, second, third}) allocator.free(block);
  allocator.allocate(150 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 73400320", "large 0: 157286400a"));
  EXPECT_EQ(allocator.counters().retries, 0);
}

TEST(CachingAllocatorRelease, CollectsLargeSegmentsOfAboveAverageAge) {
  // 100 MiB may be reserved; garbage is collected from 50 MiB on.
  auto allocator = allocator_with("garbage_collection_threshold:0.5,per_process_memory_fraction:0.5",
                                  {.total = 200 * kMiB});
  const auto old = allocator.allocate(12 * kMiB);
  const auto young = allocator.allocate(30 * kMiB);
  allocator.free(old);
  for (int i = 0; i < 5; ++i) allocator.free(allocator.allocate(14 * kMiB));
  allocator.free(young);
  EXPECT_EQ(allocator.counters().reserved.current, 56 * kMiB);
  allocator.allocate(32 * kMiB);
  EXPECT_THAT(layout(allocator), ElementsAre("large 0: 31457280", "large 0: 14680064", "large 0: 33554432a"));
}

TEST(CachingAllocatorRelease, CollectsNothingBelowTheThreshold) {
  auto allocator = allocator_with("garbage_collection_threshold:0.5,per_process_memory_fraction:0.5",
                                  {.total = 200 * kMiB});
  allocator.free(allocator.allocate(50 * kMiB));
  allocator.allocate(50 * kMiB, 1);
  EXPECT_EQ(allocator.counters().reserved.current, 100 * kMiB);
}

TEST(CachingAllocatorRelease, CollectsNothingWithoutAMemoryFraction) {
  auto allocator = allocator_with("garbage_collection_threshold:0.1", {.total = 200 * kMiB});
  allocator.free(allocator.allocate(50 * kMiB));
  allocator.allocate(60 * kMiB);
  EXPECT_EQ(allocator.counters().reserved.current, 110 * kMiB);
}

}  // namespace
}  // namespace offprof

#include "traces/model/allocator_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/allocator/allocator_layout.h"
#include "simulator/allocator/caching_allocator.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::Pair;

CachingAllocator allocator_with(const std::string& settings) {
  return CachingAllocator(parse_allocator_settings(settings));
}

// Allocates blocks of two streams and both pools, with free ones between them.
void fill(CachingAllocator& allocator) {
  const auto hole = allocator.allocate(1000, 0, 1);
  allocator.allocate(700, 0, 2);
  allocator.allocate(30 * kMiB, 1, 3);
  const auto large_hole = allocator.allocate(50 * kMiB, 0, 4);
  allocator.allocate(4 * kMiB, 0);
  allocator.free(hole);
  allocator.free(large_hole);
}

class AllocatorStateOf : public testing::TestWithParam<const char*> {};

TEST_P(AllocatorStateOf, RestoresAnAllocator) {
  CachingAllocator allocator = allocator_with(GetParam());
  fill(allocator);
  allocator.empty_cache();
  const CachingAllocator again(allocator.state());
  EXPECT_EQ(again.state(), allocator.state());
  EXPECT_EQ(layout(again), layout(allocator));
}

TEST_P(AllocatorStateOf, ServesTheSameRequestsAlike) {
  CachingAllocator allocator = allocator_with(GetParam());
  fill(allocator);
  allocator.empty_cache();
  CachingAllocator again(allocator.state());
  for (CachingAllocator* either : {&allocator, &again}) {
    either->free(either->blocks_by_storage().at(2));
    for (const Bytes bytes : {600 * kKiB, 3 * kMiB, 60 * kMiB, 30 * kMiB}) either->allocate(bytes);
  }
  EXPECT_EQ(again.state(), allocator.state());
}

INSTANTIATE_TEST_SUITE_P(Settings, AllocatorStateOf,
                         testing::Values("", "expandable_segments:True", "max_split_size_mb:20"));

TEST(AllocatorState, NamesTheStoragesOfAllocatedBlocks) {
  CachingAllocator allocator(AllocatorSettings{});
  fill(allocator);
  EXPECT_THAT(allocator.blocks_by_storage(), ElementsAre(Pair(2, testing::_), Pair(3, testing::_)));
  CachingAllocator again(allocator.state());
  again.free(again.blocks_by_storage().at(3));
  EXPECT_THAT(again.blocks_by_storage(), ElementsAre(Pair(2, testing::_)));
}

TEST(AllocatorState, InitializesCountersFromItsContents) {
  CachingAllocator allocator(AllocatorSettings{});
  fill(allocator);
  const CachingAllocator again(allocator.state());
  EXPECT_EQ(again.counters().requested.current, allocator.counters().requested.current);
  EXPECT_EQ(again.counters().allocated.current, allocator.counters().allocated.current);
  EXPECT_EQ(again.counters().reserved.current, allocator.counters().reserved.current);
  EXPECT_EQ(again.counters().reserved.peak, again.counters().reserved.current);
  EXPECT_EQ(again.counters().segments, allocator.counters().segments);
}

TEST(AllocatorState, CountsBlocksThatWaitForEventsAsAllocated) {
  CachingAllocator allocator(AllocatorSettings{});
  const auto block = allocator.allocate(30 * kMiB, 0, 5);
  allocator.record_stream(block, 1);
  allocator.free(block);
  ASSERT_EQ(allocator.state().segments.size(), 1u);
  EXPECT_TRUE(allocator.state().segments[0].blocks[0].allocated);
  EXPECT_EQ(allocator.state().segments[0].blocks[0].storage, -1);
}

TEST(AllocatorState, KeepsTheOffsetOfAnExpandableSegment) {
  CachingAllocator allocator = allocator_with("expandable_segments:True");
  const auto first = allocator.allocate(40 * kMiB);
  allocator.allocate(20 * kMiB);
  allocator.free(first);
  allocator.empty_cache();
  ASSERT_EQ(allocator.state().segments.size(), 1u);
  EXPECT_EQ(allocator.state().segments[0].range_offset, 40 * kMiB);
  CachingAllocator again(allocator.state());
  again.allocate(30 * kMiB);
  EXPECT_THAT(layout(again), ElementsAre("+0 large 0: 31457280a 10485760 20971520a"));
}

TEST(AllocatorState, DistinguishesAddressRangesOfOneStream) {
  CachingAllocator allocator(parse_allocator_settings("expandable_segments:True"), {.total = 160 * kMiB});
  const auto all_of_first = allocator.allocate(180 * kMiB);  // the range is an eighth larger than the device
  const auto begin_of_second = allocator.allocate(20 * kMiB);
  allocator.allocate(20 * kMiB);
  allocator.free(begin_of_second);
  allocator.empty_cache();
  CachingAllocator again(allocator.state(), {.total = 160 * kMiB});
  EXPECT_THAT(layout(again), ElementsAre("+0 large 0: 188743680a", "+20971520 large 0: 20971520a"));
  allocator.free(all_of_first);
  allocator.empty_cache();
  again = CachingAllocator(allocator.state(), {.total = 160 * kMiB});
  again.allocate(15 * kMiB);
  EXPECT_THAT(layout(again), ElementsAre("+0 large 0: 15728640a 5242880 20971520a"));
}

TEST(AllocatorState, AcceptsTheStateOfALargerDevice) {
  AllocatorState state;
  state.settings = "expandable_segments:True";
  for (const Bytes offset : {0 * kMiB, 400 * kMiB}) {
    state.segments.push_back({0, true, true, {{20 * kMiB, 20 * kMiB, true, -1}}, 0, offset});
  }
  CachingAllocator again(state, {.total = 80 * kMiB});
  EXPECT_EQ(again.state(), state);
}

TEST(AllocatorState, RejectsPartsOfGranules) {
  AllocatorState state;
  state.settings = "expandable_segments:True";
  state.segments.push_back({0, true, true, {{20 * kMiB, 0, false, -1}}, 0, 2 * kMiB});
  EXPECT_THROW(CachingAllocator{state}, Error);
}

TEST(AllocatorState, RejectsInvalidSettings) {
  AllocatorState state;
  state.settings = "backend:cudaMallocAsync";
  EXPECT_THROW(CachingAllocator{state}, Error);
}

}  // namespace
}  // namespace offprof

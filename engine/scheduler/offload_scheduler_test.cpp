#include <gtest/gtest.h>

#include <utility>

#include "tests/support/command_lists.h"
#include "tests/support/limit_policies.h"
#include "tests/support/scheduler_under_test.h"

namespace offprof {
namespace {

// --- Choice of tensors ---

TEST(OffloadScheduler, OffloadsATensorAtTheThreshold) {
  SchedulerUnderTest scheduler(with_threshold(100));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kOffloaded, 0}));
}

TEST(OffloadScheduler, KeepsATensorBelowTheThreshold) {
  SchedulerUnderTest scheduler(with_threshold(100));
  EXPECT_EQ(scheduler.pack(99), "keep 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kBelowThreshold, -1}));
}

TEST(OffloadScheduler, OffloadsOnlyTensorsInThePlan) {
  SchedulerUnderTest scheduler(with_plan({1}));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kNotInPlan, -1}));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kOffloaded, 0}));
}

TEST(OffloadScheduler, SharesACopyWithATensorOutsideThePlan) {
  SchedulerUnderTest scheduler(with_plan({0}));
  scheduler.pack(whole_storage(1, 100));
  scheduler.pack(whole_storage(1, 100));
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kSharedCopy, 0}));
}

TEST(OffloadScheduler, AppliesTheThresholdToPlannedTensorsToo) {
  Policy policy = with_plan({0});
  policy.threshold_bytes = 101;
  SchedulerUnderTest scheduler(policy);
  scheduler.pack(100);
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kBelowThreshold, -1}));
}

TEST(OffloadScheduler, ComparesTheStorageWithTheThreshold) {
  SchedulerUnderTest scheduler(with_threshold(100));
  PackRequest small_view = whole_storage(1, 100);
  small_view.tensor_bytes = 4;
  scheduler.pack(small_view);
  EXPECT_EQ(scheduler.decision().place, Place::kHost);
  EXPECT_EQ(bytes_of(scheduler.commands().front()), 100);  // the whole storage moves
}

TEST(OffloadScheduler, KeepsEverythingWithoutAThreshold) {
  SchedulerUnderTest scheduler(preset_policy("keep"));
  EXPECT_EQ(scheduler.pack(1 << 20), "keep 0");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kNothingOffloaded);
}

class OffloadSchedulerKeeps : public testing::TestWithParam<std::pair<Movability, PlacementReason>> {};

TEST_P(OffloadSchedulerKeeps, TensorsThatMayNotMoveAndReportsTheReason) {
  SchedulerUnderTest scheduler(with_threshold(0));
  PackRequest request = whole_storage(1, 100);
  request.movability = GetParam().first;
  EXPECT_EQ(scheduler.pack(request), "keep 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, GetParam().second, -1}));
}

INSTANTIATE_TEST_SUITE_P(EachReason, OffloadSchedulerKeeps,
                         testing::Values(std::pair{Movability::kParameter, PlacementReason::kParameter},
                                         std::pair{Movability::kBuffer, PlacementReason::kBuffer},
                                         std::pair{Movability::kInput, PlacementReason::kInput},
                                         std::pair{Movability::kResident, PlacementReason::kResident},
                                         std::pair{Movability::kEmpty, PlacementReason::kEmpty},
                                         std::pair{Movability::kUnsupportedLayout,
                                                   PlacementReason::kUnsupportedLayout},
                                         std::pair{Movability::kUnpacked, PlacementReason::kUnpacked}));

TEST(OffloadScheduler, ReleasesTheHoldOnAKeptTensor) {
  SchedulerUnderTest scheduler(with_threshold(100));
  scheduler.pack(99);
  EXPECT_EQ(scheduler.unpack(0), "");
  EXPECT_EQ(scheduler.release(0), "release_kept 0");
  EXPECT_EQ(bytes_of(scheduler.commands().back()), 99);
}

TEST(OffloadScheduler, NeedsNoNodeEnds) {
  const SchedulerUnderTest scheduler(with_threshold(0));
  EXPECT_FALSE(scheduler.scheduler().needs_node_ends());
}

// --- One copy per storage version ---

TEST(OffloadScheduler, ViewsOfOneStorageVersionShareACopy) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(whole_storage(7, 100));
  EXPECT_EQ(scheduler.pack(whole_storage(7, 100)), "");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kSharedCopy, 0}));
}

TEST(OffloadScheduler, ANewVersionOfAStorageGetsItsOwnCopy) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(whole_storage(7, 100, 0));
  EXPECT_EQ(scheduler.pack(whole_storage(7, 100, 1)), "copy_out 1, wait_out 1, drop 1");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kOffloaded);
}

TEST(OffloadScheduler, CommandsOfASharedCopyNameItsFirstTensor) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(whole_storage(7, 100));
  scheduler.pack(whole_storage(7, 100));
  scheduler.unpack(1);
  EXPECT_EQ(scheduler.commands().back(), (Command{WaitIn{{0, 0, 100}}}));
}

TEST(OffloadScheduler, ASharedCopyLivesUntilTheLastRelease) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(whole_storage(7, 100));
  scheduler.pack(whole_storage(7, 100));
  EXPECT_EQ(scheduler.release(1), "");
  EXPECT_EQ(scheduler.release(0), "free_host 0");
}

TEST(OffloadScheduler, AStorageVersionWhoseCopyIsGoneGetsANewCopy) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(whole_storage(7, 100));
  scheduler.release(0);
  EXPECT_EQ(scheduler.pack(whole_storage(7, 100)), "copy_out 1, wait_out 1, drop 1");
}

// --- Host memory ---

TEST(OffloadScheduler, KeepsATensorThatExceedsTheHostMemoryLimit) {
  SchedulerUnderTest scheduler(with_host_memory(250));
  scheduler.pack_many(2, 100);
  EXPECT_EQ(scheduler.pack(51), "keep 2");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kHostFull, -1}));
  EXPECT_EQ(scheduler.pack(50), "copy_out 2, wait_out 2, drop 2");
}

TEST(OffloadScheduler, ASharedCopyCountsOnceTowardsTheHostMemoryLimit) {
  SchedulerUnderTest scheduler(with_host_memory(100));
  scheduler.pack(whole_storage(7, 100));
  scheduler.pack(whole_storage(7, 100));
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kSharedCopy);
}

TEST(OffloadScheduler, AFreedCopyMakesRoomUnderTheHostMemoryLimit) {
  SchedulerUnderTest scheduler(with_host_memory(100));
  scheduler.pack(100);
  scheduler.release(0);
  EXPECT_EQ(scheduler.pack(100), "copy_out 1, wait_out 1, drop 1");
}

}  // namespace
}  // namespace offprof

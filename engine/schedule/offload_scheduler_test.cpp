#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "engine/schedule/scheduler_under_test.h"

namespace offprof {
namespace {

Policy with_threshold(Bytes bytes) {
  Policy policy;
  policy.threshold_bytes = bytes;
  return policy;
}

Policy with_stash(std::int64_t count) {
  Policy policy;
  policy.stash_count = count;
  return policy;
}

Policy with_stash_bytes(Bytes bytes) {
  Policy policy;
  policy.stash_bytes = bytes;
  return policy;
}

Policy with_prefetch(Bytes bytes) {
  Policy policy;
  policy.prefetch_bytes = bytes;
  return policy;
}

Policy with_host_memory(Bytes bytes) {
  Policy policy;
  policy.host_memory_bytes = bytes;
  return policy;
}

Policy with_plan(std::vector<SavedId> tensors) {
  Policy policy;
  policy.tensors = std::move(tensors);
  return policy;
}

// --- What is offloaded ---

TEST(OffloadScheduler, OffloadsATensorOfTheThreshold) {
  SchedulerUnderTest scheduler(with_threshold(100));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kOffloaded, 0}));
}

TEST(OffloadScheduler, KeepsATensorBelowTheThreshold) {
  SchedulerUnderTest scheduler(with_threshold(100));
  EXPECT_EQ(scheduler.pack(99), "keep 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kBelowThreshold, -1}));
}

TEST(OffloadScheduler, OffloadsOnlyWhatThePlanNames) {
  SchedulerUnderTest scheduler(with_plan({1}));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kNotInPlan, -1}));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kOffloaded, 0}));
}

TEST(OffloadScheduler, SharesACopyWithATensorThatThePlanDoesNotName) {
  SchedulerUnderTest scheduler(with_plan({0}));
  scheduler.pack(whole_storage(1, 100));
  scheduler.pack(whole_storage(1, 100));
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kSharedCopy, 0}));
}

TEST(OffloadScheduler, HoldsThePlannedTensorsAgainstTheThresholdToo) {
  Policy policy = with_plan({0});
  policy.threshold_bytes = 101;
  SchedulerUnderTest scheduler(policy);
  scheduler.pack(100);
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kBelowThreshold, -1}));
}

TEST(OffloadScheduler, HoldsTheStorageAgainstTheThresholdNotTheTensor) {
  SchedulerUnderTest scheduler(with_threshold(100));
  PackRequest small_view = whole_storage(1, 100);
  small_view.tensor_bytes = 4;
  scheduler.pack(small_view);
  EXPECT_EQ(scheduler.decision().place, Place::kHost);
  EXPECT_EQ(scheduler.commands().front().bytes, 100);  // the whole storage moves
}

TEST(OffloadScheduler, KeepsEverythingWithoutAThreshold) {
  SchedulerUnderTest scheduler(preset_policy("keep"));
  EXPECT_EQ(scheduler.pack(1 << 20), "keep 0");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kNothingOffloaded);
}

class OffloadSchedulerKeeps : public testing::TestWithParam<std::pair<Movability, PlacementReason>> {};

TEST_P(OffloadSchedulerKeeps, WhatMayNotMoveAndSaysWhy) {
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
                                                   PlacementReason::kUnsupportedLayout}));

TEST(OffloadScheduler, LetsGoOfAKeptTensorAtItsRelease) {
  SchedulerUnderTest scheduler(with_threshold(100));
  scheduler.pack(99);
  EXPECT_EQ(scheduler.unpack(0), "");
  EXPECT_EQ(scheduler.release(0), "let_go 0");
  EXPECT_EQ(scheduler.commands().back().bytes, 99);
}

TEST(OffloadScheduler, NeedsNoNodeEnds) {
  const SchedulerUnderTest scheduler(with_threshold(0));
  EXPECT_FALSE(scheduler.scheduler().needs_node_ends());
}

// --- Forward stash ---

TEST(OffloadScheduler, WithoutAStashWaitsAndDropsAtOnce) {
  SchedulerUnderTest scheduler(with_stash(0));
  EXPECT_EQ(scheduler.pack(100), "copy_out 0, wait_out 0, drop 0");
}

TEST(OffloadScheduler, WithNeitherStashLimitHasNoStash) {
  SchedulerUnderTest scheduler(with_threshold(0));
  EXPECT_EQ(scheduler.pack(100), "copy_out 0, wait_out 0, drop 0");
}

TEST(OffloadScheduler, StashByCountDropsTheOldestAfterWaitingForIt) {
  SchedulerUnderTest scheduler(with_stash(2));
  EXPECT_EQ(scheduler.pack(100), "copy_out 0");
  EXPECT_EQ(scheduler.pack(100), "copy_out 1");
  EXPECT_EQ(scheduler.pack(100), "wait_out 0, drop 0, copy_out 2");
  EXPECT_EQ(scheduler.pack(100), "wait_out 1, drop 1, copy_out 3");
}

TEST(OffloadScheduler, StashByBytesDropsAsManyAsTheNewOneNeeds) {
  SchedulerUnderTest scheduler(with_stash_bytes(100));
  EXPECT_EQ(scheduler.pack(40), "copy_out 0");
  EXPECT_EQ(scheduler.pack(60), "copy_out 1");
  EXPECT_EQ(scheduler.pack(50), "wait_out 0, drop 0, wait_out 1, drop 1, copy_out 2");
}

TEST(OffloadScheduler, StashByBytesIsFullAtItsLimit) {
  SchedulerUnderTest scheduler(with_stash_bytes(100));
  EXPECT_EQ(scheduler.pack(100), "copy_out 0");
  EXPECT_EQ(scheduler.pack(1), "wait_out 0, drop 0, copy_out 1");
}

TEST(OffloadScheduler, StashKeepsBothLimits) {
  Policy policy = with_stash(2);
  policy.stash_bytes = 100;
  SchedulerUnderTest scheduler(policy);
  EXPECT_EQ(scheduler.pack(10), "copy_out 0");
  EXPECT_EQ(scheduler.pack(10), "copy_out 1");
  EXPECT_EQ(scheduler.pack(10), "wait_out 0, drop 0, copy_out 2");  // by count
  EXPECT_EQ(scheduler.pack(90), "wait_out 1, drop 1, copy_out 3");  // by count; 10 + 90 fit
  EXPECT_EQ(scheduler.pack(20), "wait_out 2, drop 2, wait_out 3, drop 3, copy_out 4");  // by bytes
}

TEST(OffloadScheduler, ATensorLargerThanTheStashPassesItBy) {
  SchedulerUnderTest scheduler(with_stash_bytes(100));
  scheduler.pack(40);
  EXPECT_EQ(scheduler.pack(101), "copy_out 1, wait_out 1, drop 1");
  EXPECT_EQ(scheduler.pack(60), "copy_out 2");  // the stash still holds the first, and has room beside it
}

TEST(OffloadScheduler, KeptTensorsTakeNoPlaceInTheStash) {
  Policy policy = with_stash(1);
  policy.threshold_bytes = 100;
  SchedulerUnderTest scheduler(policy);
  scheduler.pack(100);
  EXPECT_EQ(scheduler.pack(99), "keep 1");
}

TEST(OffloadScheduler, UnpackFromTheStashCopiesNothing) {
  SchedulerUnderTest scheduler(with_stash(1));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.unpack(0), "");
}

TEST(OffloadScheduler, UnpackFromTheStashMakesRoomInIt) {
  SchedulerUnderTest scheduler(with_stash(1));
  scheduler.pack(100);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.pack(100), "copy_out 1");  // a pack during backward
}

TEST(OffloadScheduler, ReleaseOfAStashedCopyWaitsForItFirst) {
  SchedulerUnderTest scheduler(with_stash(1));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.release(0), "wait_out 0, drop 0, free_host 0");
  EXPECT_EQ(scheduler.pack(100), "copy_out 1");
}

TEST(OffloadScheduler, ReleaseAfterAStashHitWaitsForTheCopyOut) {
  SchedulerUnderTest scheduler(with_stash(1));
  scheduler.pack(100);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.release(0), "wait_out 0, drop 0, free_host 0");
}

// --- One copy per storage version ---

TEST(OffloadScheduler, ViewsOfOneStorageVersionShareACopy) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(whole_storage(7, 100));
  EXPECT_EQ(scheduler.pack(whole_storage(7, 100)), "");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kSharedCopy, 0}));
}

TEST(OffloadScheduler, ANewVersionOfAStorageGetsACopyOfItsOwn) {
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
  EXPECT_EQ(scheduler.commands().back(), (Command{CommandKind::kWaitIn, 0, 0, 100}));
}

TEST(OffloadScheduler, ASharedCopyLivesUntilTheLastRelease) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(whole_storage(7, 100));
  scheduler.pack(whole_storage(7, 100));
  EXPECT_EQ(scheduler.release(1), "");
  EXPECT_EQ(scheduler.release(0), "free_host 0");
}

TEST(OffloadScheduler, AStorageVersionWhoseCopyIsGoneGetsAnother) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(whole_storage(7, 100));
  scheduler.release(0);
  EXPECT_EQ(scheduler.pack(whole_storage(7, 100)), "copy_out 1, wait_out 1, drop 1");
}

// --- Reload ---

TEST(OffloadScheduler, ReloadsOnDemandAndWaits) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0");
  EXPECT_EQ(scheduler.release(0), "drop 0, free_host 0");
}

TEST(OffloadScheduler, ReloadsOnceForAllUsers) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(whole_storage(7, 100));
  scheduler.pack(whole_storage(7, 100));
  EXPECT_EQ(scheduler.unpack(1), "copy_in 0, wait_in 0");
  EXPECT_EQ(scheduler.release(1), "");
  EXPECT_EQ(scheduler.unpack(0), "");
  EXPECT_EQ(scheduler.release(0), "drop 0, free_host 0");
}

TEST(OffloadScheduler, ReloadsOnceWhereATensorIsUnpackedAgain) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(100);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.unpack(0), "");
}

TEST(OffloadScheduler, ATensorThatIsNeverUnpackedIsFreedAtItsRelease) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.release(0), "free_host 0");
}

TEST(OffloadScheduler, PacksDuringBackwardLikeInForward) {
  SchedulerUnderTest scheduler(with_prefetch(1000));
  scheduler.pack_many(2, 100);
  scheduler.unpack(1);
  EXPECT_EQ(scheduler.pack(100), "copy_out 2, wait_out 2, drop 2");
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, wait_in 2");
  EXPECT_EQ(scheduler.release(2), "drop 2, free_host 2");
}

// --- Prefetch ---

TEST(OffloadScheduler, PrefetchesInTheRecordedOrder) {
  SchedulerUnderTest scheduler(with_prefetch(200), {1, 3, 0, 2});
  scheduler.pack_many(4, 100);
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, copy_in 3, copy_in 0, wait_in 1");
  EXPECT_EQ(scheduler.unpack(3), "copy_in 2, wait_in 3");
}

TEST(OffloadScheduler, QueuesTheNeededCopyFirstAndWaitsForItLast) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1});
  scheduler.pack_many(2, 100);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
}

TEST(OffloadScheduler, WithoutARecordedOrderPrefetchesInReversePackOrder) {
  SchedulerUnderTest scheduler(with_prefetch(100));
  scheduler.pack_many(3, 100);
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, copy_in 1, wait_in 2");
  EXPECT_EQ(scheduler.unpack(1), "copy_in 0, wait_in 1");
  EXPECT_EQ(scheduler.unpack(0), "wait_in 0");
}

TEST(OffloadScheduler, NeverPrefetchesMoreThanTheWindow) {
  SchedulerUnderTest scheduler(with_prefetch(199), {0, 1, 2});
  scheduler.pack_many(3, 100);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
}

TEST(OffloadScheduler, PrefetchStopsAtTheFirstThatDoesNotFit) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2});
  scheduler.pack(100);
  scheduler.pack(150);
  scheduler.pack(50);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0");  // the last would fit, but is needed later
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, copy_in 2, wait_in 1");
}

TEST(OffloadScheduler, PrefetchPassesOverWhatIsOnTheDevice) {
  Policy policy = with_prefetch(100);
  policy.stash_count = 1;
  policy.threshold_bytes = 100;
  SchedulerUnderTest scheduler(policy, {0, 3, 2, 1});
  scheduler.pack_many(2, 100);  // 0 and 1
  scheduler.pack(99);           // 2: kept
  scheduler.pack(100);          // 3: in the stash
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
}

TEST(OffloadScheduler, PrefetchPassesOverWhatIsReleased) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2});
  scheduler.pack_many(3, 100);
  scheduler.release(1);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 2, wait_in 0");
}

TEST(OffloadScheduler, ASharedCopyIsPrefetchedOnce) {
  SchedulerUnderTest scheduler(with_prefetch(1000), {0, 1, 2});
  scheduler.pack(100);
  scheduler.pack(whole_storage(7, 100));
  scheduler.pack(whole_storage(7, 100));
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
  EXPECT_EQ(scheduler.unpack(1), "wait_in 1");
  EXPECT_EQ(scheduler.unpack(2), "");
}

TEST(OffloadScheduler, WhatIsAskedForLeavesTheWindow) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2});
  scheduler.pack_many(3, 100);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
  EXPECT_EQ(scheduler.unpack(1), "copy_in 2, wait_in 1");
}

TEST(OffloadScheduler, ReleaseOfAPrefetchedCopyWaitsAndLeavesTheWindow) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2, 3});
  scheduler.pack_many(4, 100);
  scheduler.unpack(0);  // prefetches 1
  EXPECT_EQ(scheduler.release(1), "wait_in 1, drop 1, free_host 1");
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, copy_in 3, wait_in 2");
}

TEST(OffloadScheduler, PrefetchGoesOnFromARequestThatComesEarly) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2, 3});
  scheduler.pack_many(4, 100);
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, copy_in 3, wait_in 2");
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, wait_in 1");  // passed: on demand
}

TEST(OffloadScheduler, IgnoresTensorsOfTheRecordedOrderThatThisStepDoesNotHave) {
  SchedulerUnderTest scheduler(with_prefetch(100), {9, 0, 7, 1});
  scheduler.pack_many(2, 100);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
}

TEST(OffloadScheduler, ReloadsOnDemandWhatTheRecordedOrderDoesNotHave) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0});
  scheduler.pack_many(2, 100);
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, copy_in 0, wait_in 1");
  EXPECT_EQ(scheduler.unpack(0), "wait_in 0");
}

// --- A device without memory for a copy in ---

TEST(OffloadScheduler, DropsTheStashForACopyInThatTheDeviceRefuses) {
  SchedulerUnderTest scheduler(with_stash(2));
  scheduler.pack_many(3, 100);  // 1 and 2 are stashed
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(0), "wait_out 1, drop 1, wait_out 2, drop 2, copy_in 0, wait_in 0");
}

TEST(OffloadScheduler, WhatWasDroppedForAnotherIsCopiedInWhenItIsAskedFor) {
  SchedulerUnderTest scheduler(with_stash(1));
  scheduler.pack_many(2, 100);
  scheduler.refuse_next(1);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, wait_in 1");
  EXPECT_EQ(scheduler.release(1), "drop 1, free_host 1");
  EXPECT_EQ(scheduler.release(0), "drop 0, free_host 0");
}

TEST(OffloadScheduler, WhatWasDroppedForAnotherIsFreedWithoutADropWhereItIsNeverAskedFor) {
  SchedulerUnderTest scheduler(with_stash(1));
  scheduler.pack_many(2, 100);
  scheduler.refuse_next(1);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.release(1), "free_host 1");
}

TEST(OffloadScheduler, DropsWhatCameAheadForACopyInThatTheDeviceRefuses) {
  SchedulerUnderTest scheduler(with_prefetch(200), {0, 1, 2, 3});
  scheduler.pack_many(4, 100);
  scheduler.unpack(0);  // 1 and 2 come ahead
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(3), "wait_in 1, drop 1, wait_in 2, drop 2, copy_in 3, wait_in 3");
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, wait_in 1");
}

TEST(OffloadScheduler, KeepsWhatBackwardHasAskedForWhereTheDeviceRefuses) {
  SchedulerUnderTest scheduler(with_stash(2));
  scheduler.pack_many(3, 100);
  scheduler.unpack(2);
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(0), "wait_out 1, drop 1, copy_in 0, wait_in 0");
}

TEST(OffloadScheduler, ACopyInThatTheDeviceRefusesIsTriedOnceMoreWhereNothingIsToBeDropped) {
  SchedulerUnderTest scheduler(with_prefetch(200), {0, 1});
  scheduler.pack_many(2, 100);
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0");
}

TEST(OffloadScheduler, ACopyAheadThatTheDeviceRefusesAndAllAfterItComeOnDemand) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2, 3});
  scheduler.pack_many(4, 100);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(1), "wait_in 1");  // 2 is refused
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, wait_in 2");
  EXPECT_EQ(scheduler.unpack(3), "copy_in 3, wait_in 3");
}

TEST(OffloadScheduler, DropsWhatCameAheadWhereTheDeviceRefusesMoreOfIt) {
  Policy policy = with_prefetch(200);
  policy.stash_count = 1;
  SchedulerUnderTest scheduler(policy, {0, 1, 2, 3});
  scheduler.pack_many(5, 100);  // 4 is stashed
  scheduler.unpack(0);          // 1 and 2 come ahead
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(1), "wait_in 2, drop 2, wait_in 1");
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, wait_in 2");
  EXPECT_EQ(scheduler.unpack(4), "");
}

TEST(OffloadScheduler, AStashThatWasDroppedHasRoomForNewOnes) {
  SchedulerUnderTest scheduler(with_stash(2));
  scheduler.pack_many(3, 100);
  scheduler.refuse_next(1);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.pack(100), "copy_out 3");
  EXPECT_EQ(scheduler.pack(100), "copy_out 4");
  EXPECT_EQ(scheduler.pack(100), "wait_out 3, drop 3, copy_out 5");
}

// --- Host memory ---

TEST(OffloadScheduler, KeepsWhatTheHostCapLeavesNoRoomFor) {
  SchedulerUnderTest scheduler(with_host_memory(250));
  scheduler.pack_many(2, 100);
  EXPECT_EQ(scheduler.pack(51), "keep 2");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kHostFull, -1}));
  EXPECT_EQ(scheduler.pack(50), "copy_out 2, wait_out 2, drop 2");
}

TEST(OffloadScheduler, ASharedCopyTakesNoMoreOfTheHostCap) {
  SchedulerUnderTest scheduler(with_host_memory(100));
  scheduler.pack(whole_storage(7, 100));
  scheduler.pack(whole_storage(7, 100));
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kSharedCopy);
}

TEST(OffloadScheduler, AFreedCopyMakesRoomUnderTheHostCap) {
  SchedulerUnderTest scheduler(with_host_memory(100));
  scheduler.pack(100);
  scheduler.release(0);
  EXPECT_EQ(scheduler.pack(100), "copy_out 1, wait_out 1, drop 1");
}

}  // namespace
}  // namespace offprof

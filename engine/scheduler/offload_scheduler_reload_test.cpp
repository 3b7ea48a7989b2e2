#include <gtest/gtest.h>

#include "tests/support/limit_policies.h"
#include "tests/support/scheduler_under_test.h"

namespace offprof {
namespace {

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

TEST(OffloadScheduler, ReloadsOnceIfATensorIsUnpackedAgain) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(100);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.unpack(0), "");
}

TEST(OffloadScheduler, FreesATensorThatIsNeverUnpackedAtItsRelease) {
  SchedulerUnderTest scheduler(with_stash(0));
  scheduler.pack(100);
  EXPECT_EQ(scheduler.release(0), "free_host 0");
}

TEST(OffloadScheduler, PacksDuringBackwardAsInForward) {
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

TEST(OffloadScheduler, PrefetchesInReversePackOrderWithoutARecordedOrder) {
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

TEST(OffloadScheduler, PrefetchStopsAtTheFirstCopyThatDoesNotFit) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2});
  scheduler.pack(100);
  scheduler.pack(150);
  scheduler.pack(50);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0");  // the last copy would fit, but it is needed later
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, copy_in 2, wait_in 1");
}

TEST(OffloadScheduler, PrefetchSkipsTensorsOnTheDevice) {
  Policy policy = with_prefetch(100);
  policy.stash_count = 1;
  policy.threshold_bytes = 100;
  SchedulerUnderTest scheduler(policy, {0, 3, 2, 1});
  scheduler.pack_many(2, 100);  // 0 and 1
  scheduler.pack(99);           // 2: kept
  scheduler.pack(100);          // 3: in the stash
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
}

TEST(OffloadScheduler, PrefetchSkipsReleasedTensors) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2});
  scheduler.pack_many(3, 100);
  scheduler.release(1);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 2, wait_in 0");
}

TEST(OffloadScheduler, PrefetchesASharedCopyOnce) {
  SchedulerUnderTest scheduler(with_prefetch(1000), {0, 1, 2});
  scheduler.pack(100);
  scheduler.pack(whole_storage(7, 100));
  scheduler.pack(whole_storage(7, 100));
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
  EXPECT_EQ(scheduler.unpack(1), "wait_in 1");
  EXPECT_EQ(scheduler.unpack(2), "");
}

TEST(OffloadScheduler, AnUnpackedCopyLeavesTheWindow) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2});
  scheduler.pack_many(3, 100);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
  EXPECT_EQ(scheduler.unpack(1), "copy_in 2, wait_in 1");
}

TEST(OffloadScheduler, ReleaseWaitsForAPrefetchedCopyAndFreesItsPartOfTheWindow) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2, 3});
  scheduler.pack_many(4, 100);
  scheduler.unpack(0);  // prefetches 1
  EXPECT_EQ(scheduler.release(1), "wait_in 1, drop 1, free_host 1");
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, copy_in 3, wait_in 2");
}

TEST(OffloadScheduler, PrefetchContinuesAfterAnUnpackOutOfOrder) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2, 3});
  scheduler.pack_many(4, 100);
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, copy_in 3, wait_in 2");
  EXPECT_EQ(scheduler.unpack(1),
            "copy_in 1, wait_in 1");  // prefetch has passed it, so it is copied on demand
}

TEST(OffloadScheduler, IgnoresTensorsOfTheRecordedOrderThatThisStepDoesNotHave) {
  SchedulerUnderTest scheduler(with_prefetch(100), {9, 0, 7, 1});
  scheduler.pack_many(2, 100);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
}

TEST(OffloadScheduler, ReloadsTensorsMissingFromTheRecordedOrderOnDemand) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0});
  scheduler.pack_many(2, 100);
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, copy_in 0, wait_in 1");
  EXPECT_EQ(scheduler.unpack(0), "wait_in 0");
}

// --- A device without memory for a copy in ---

TEST(OffloadScheduler, DropsTheStashIfTheDeviceRefusesACopyIn) {
  SchedulerUnderTest scheduler(with_stash(2));
  scheduler.pack_many(3, 100);  // 1 and 2 are stashed
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(0), "wait_out 1, drop 1, wait_out 2, drop 2, copy_in 0, wait_in 0");
}

TEST(OffloadScheduler, ReloadsADroppedStashEntryAtItsUnpack) {
  SchedulerUnderTest scheduler(with_stash(1));
  scheduler.pack_many(2, 100);
  scheduler.refuse_next(1);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, wait_in 1");
  EXPECT_EQ(scheduler.release(1), "drop 1, free_host 1");
  EXPECT_EQ(scheduler.release(0), "drop 0, free_host 0");
}

TEST(OffloadScheduler, FreesADroppedStashEntryThatIsNeverUnpacked) {
  SchedulerUnderTest scheduler(with_stash(1));
  scheduler.pack_many(2, 100);
  scheduler.refuse_next(1);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.release(1), "free_host 1");
}

TEST(OffloadScheduler, DropsPrefetchedCopiesIfTheDeviceRefusesACopyIn) {
  SchedulerUnderTest scheduler(with_prefetch(200), {0, 1, 2, 3});
  scheduler.pack_many(4, 100);
  scheduler.unpack(0);  // 1 and 2 are prefetched
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(3), "wait_in 1, drop 1, wait_in 2, drop 2, copy_in 3, wait_in 3");
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, wait_in 1");
}

TEST(OffloadScheduler, KeepsUnpackedCopiesIfTheDeviceRefuses) {
  SchedulerUnderTest scheduler(with_stash(2));
  scheduler.pack_many(3, 100);
  scheduler.unpack(2);
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(0), "wait_out 1, drop 1, copy_in 0, wait_in 0");
}

TEST(OffloadScheduler, RetriesARefusedCopyInOnceIfNothingCanBeDropped) {
  SchedulerUnderTest scheduler(with_prefetch(200), {0, 1});
  scheduler.pack_many(2, 100);
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0");
}

TEST(OffloadScheduler, CopiesOnDemandAfterARefusedPrefetch) {
  SchedulerUnderTest scheduler(with_prefetch(100), {0, 1, 2, 3});
  scheduler.pack_many(4, 100);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, copy_in 1, wait_in 0");
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(1), "wait_in 1");  // the prefetch of 2 is refused
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, wait_in 2");
  EXPECT_EQ(scheduler.unpack(3), "copy_in 3, wait_in 3");
}

TEST(OffloadScheduler, DropsPrefetchedCopiesIfTheDeviceRefusesAnotherPrefetch) {
  Policy policy = with_prefetch(200);
  policy.stash_count = 1;
  SchedulerUnderTest scheduler(policy, {0, 1, 2, 3});
  scheduler.pack_many(5, 100);  // 4 is stashed
  scheduler.unpack(0);          // 1 and 2 are prefetched
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(1), "wait_in 2, drop 2, wait_in 1");
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, wait_in 2");
  EXPECT_EQ(scheduler.unpack(4), "");
}

TEST(OffloadScheduler, ADroppedStashHasRoomForNewCopies) {
  SchedulerUnderTest scheduler(with_stash(2));
  scheduler.pack_many(3, 100);
  scheduler.refuse_next(1);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.pack(100), "copy_out 3");
  EXPECT_EQ(scheduler.pack(100), "copy_out 4");
  EXPECT_EQ(scheduler.pack(100), "wait_out 3, drop 3, copy_out 5");
}

}  // namespace
}  // namespace offprof

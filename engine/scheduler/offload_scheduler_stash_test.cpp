#include <gtest/gtest.h>

#include "tests/support/limit_policies.h"
#include "tests/support/scheduler_under_test.h"

namespace offprof {
namespace {

// --- Forward stash ---

TEST(OffloadScheduler, WithoutAStashWaitsAndDropsAtOnce) {
  SchedulerUnderTest scheduler(with_stash(0));
  EXPECT_EQ(scheduler.pack(100), "copy_out 0, wait_out 0, drop 0");
}

TEST(OffloadScheduler, HasNoStashWithoutAStashLimit) {
  SchedulerUnderTest scheduler(with_threshold(0));
  EXPECT_EQ(scheduler.pack(100), "copy_out 0, wait_out 0, drop 0");
}

TEST(OffloadScheduler, StashByCountWaitsForTheOldestAndDropsIt) {
  SchedulerUnderTest scheduler(with_stash(2));
  EXPECT_EQ(scheduler.pack(100), "copy_out 0");
  EXPECT_EQ(scheduler.pack(100), "copy_out 1");
  EXPECT_EQ(scheduler.pack(100), "wait_out 0, drop 0, copy_out 2");
  EXPECT_EQ(scheduler.pack(100), "wait_out 1, drop 1, copy_out 3");
}

TEST(OffloadScheduler, StashByBytesDropsAsManyAsTheNewCopyNeeds) {
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

TEST(OffloadScheduler, StashRespectsBothLimits) {
  Policy policy = with_stash(2);
  policy.stash_bytes = 100;
  SchedulerUnderTest scheduler(policy);
  EXPECT_EQ(scheduler.pack(10), "copy_out 0");
  EXPECT_EQ(scheduler.pack(10), "copy_out 1");
  EXPECT_EQ(scheduler.pack(10), "wait_out 0, drop 0, copy_out 2");  // by count
  EXPECT_EQ(scheduler.pack(90), "wait_out 1, drop 1, copy_out 3");  // by count; 10 + 90 fit
  EXPECT_EQ(scheduler.pack(20), "wait_out 2, drop 2, wait_out 3, drop 3, copy_out 4");  // by bytes
}

TEST(OffloadScheduler, ATensorLargerThanTheStashDoesNotJoinIt) {
  SchedulerUnderTest scheduler(with_stash_bytes(100));
  scheduler.pack(40);
  EXPECT_EQ(scheduler.pack(101), "copy_out 1, wait_out 1, drop 1");
  EXPECT_EQ(scheduler.pack(60),
            "copy_out 2");  // the stash still holds the first copy and has room for another
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
  EXPECT_EQ(scheduler.pack(100), "copy_out 1");  // packed during backward
}

TEST(OffloadScheduler, ReleaseWaitsForAStashedCopy) {
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

}  // namespace
}  // namespace offprof

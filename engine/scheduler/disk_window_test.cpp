#include <gtest/gtest.h>

#include "tests/support/scheduler_under_test.h"

namespace offprof {
namespace {

constexpr ResolvedPlacement kToDisk = {Place::kDisk};

Policy with_disk_buffer(Bytes bytes) {
  Policy policy;
  policy.disk_buffer_bytes = bytes;
  return policy;
}

/// Packs `count` tensors of 100 bytes to the disk, tensor n in storage n.
void pack_to_disk(SchedulerUnderTest& scheduler, int count) {
  for (int i = 0; i < count; ++i) scheduler.pack(whole_storage(i, 100), kToDisk);
}

TEST(DiskScheduling, WritesACopyAndKeepsItsHostMemory) {
  SchedulerUnderTest scheduler(with_disk_buffer(1000));
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), kToDisk),
            "take_disk 0, copy_out 0, write_disk 0, wait_out 0, drop 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDisk, PlacementReason::kRule, 0}));
}

TEST(DiskScheduling, FreesTheOldestHostMemoryIfTheNextCopyDoesNotFit) {
  SchedulerUnderTest scheduler(with_disk_buffer(200));
  pack_to_disk(scheduler, 2);
  EXPECT_EQ(scheduler.pack(whole_storage(2, 100), kToDisk),
            "take_disk 2, wait_write 0, free_host 0, copy_out 2, write_disk 2, wait_out 2, drop 2");
}

TEST(DiskScheduling, SendsACopyLargerThanTheBufferAlone) {
  SchedulerUnderTest scheduler(with_disk_buffer(50));
  pack_to_disk(scheduler, 1);
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), kToDisk),
            "take_disk 1, wait_write 0, free_host 0, copy_out 1, write_disk 1, wait_out 1, drop 1");
}

TEST(DiskScheduling, ReloadsFromHostMemoryWithoutARead) {
  SchedulerUnderTest scheduler(with_disk_buffer(1000));
  pack_to_disk(scheduler, 1);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0");
  EXPECT_EQ(scheduler.release(0), "drop 0, wait_write 0, free_host 0, free_disk 0");
}

TEST(DiskScheduling, ReadsFromTheDiskAheadOfNeed) {
  SchedulerUnderTest scheduler(with_disk_buffer(200));
  pack_to_disk(scheduler, 5);  // 3 and 4 are still in host memory
  EXPECT_EQ(scheduler.unpack(4), "copy_in 4, wait_in 4");
  EXPECT_EQ(scheduler.release(4), "drop 4, wait_write 4, free_host 4, free_disk 4");
  EXPECT_EQ(scheduler.unpack(3), "copy_in 3, read_disk 2, wait_in 3");
  EXPECT_EQ(scheduler.release(3), "drop 3, wait_write 3, free_host 3, free_disk 3");
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, read_disk 1, wait_in 2, free_host 2");
}

TEST(DiskScheduling, FreesTheBuffersOfUnpackedCopiesFirst) {
  SchedulerUnderTest scheduler(with_disk_buffer(200));
  pack_to_disk(scheduler, 4);
  scheduler.unpack(3);  // its write has not been waited for
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, wait_write 3, free_host 3, read_disk 1, wait_in 2");
}

TEST(DiskScheduling, ReadsOnDemandOutOfOrder) {
  SchedulerUnderTest scheduler(with_disk_buffer(200));
  pack_to_disk(scheduler, 4);
  EXPECT_EQ(scheduler.unpack(0), "wait_write 2, free_host 2, read_disk 0, copy_in 0, wait_in 0, free_host 0");
}

TEST(DiskScheduling, PrefetchesWhatHostMemoryHasRoomFor) {
  Policy policy = with_disk_buffer(200);
  policy.prefetch_bytes = 1000;
  SchedulerUnderTest scheduler(policy);
  pack_to_disk(scheduler, 4);
  // 2 is still in host memory. Then there is no room to read 1 until 3 has been copied in.
  EXPECT_EQ(scheduler.unpack(3), "copy_in 3, copy_in 2, wait_in 3");
  EXPECT_EQ(scheduler.release(3), "drop 3, wait_write 3, free_host 3, free_disk 3");
  EXPECT_EQ(scheduler.unpack(2), "read_disk 1, copy_in 1, wait_in 2");
}

TEST(DiskScheduling, WaitsForAReadThatNobodyNeeds) {
  SchedulerUnderTest scheduler(with_disk_buffer(200));
  pack_to_disk(scheduler, 4);
  for (const SavedId tensor : {3, 2}) {
    scheduler.unpack(tensor);
    scheduler.release(tensor);
  }
  EXPECT_EQ(scheduler.release(1), "wait_read 1, free_host 1, free_disk 1");
}

TEST(DiskScheduling, FallsBackToHostMemoryIfTheDiskIsFull) {
  Policy policy = with_disk_buffer(1000);
  policy.disk_memory_bytes = 150;
  SchedulerUnderTest scheduler(policy);
  pack_to_disk(scheduler, 1);
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), kToDisk), "copy_out 1, wait_out 1, drop 1");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kDiskFull, 1}));
}

TEST(DiskScheduling, KeepsTheTensorIfHostMemoryIsFullToo) {
  Policy policy = with_disk_buffer(1000);
  policy.disk_memory_bytes = policy.host_memory_bytes = 0;
  SchedulerUnderTest scheduler(policy);
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), kToDisk), "keep 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kDiskFull, -1}));
}

TEST(DiskScheduling, FallsBackToHostMemoryIfTheDiskRefuses) {
  SchedulerUnderTest scheduler(with_disk_buffer(1000));
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), kToDisk), "copy_out 0, wait_out 0, drop 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kDiskFull, 0}));
}

TEST(DiskScheduling, BuffersDoNotCountTowardsTheHostMemoryLimit) {
  Policy policy = with_disk_buffer(1000);
  policy.host_memory_bytes = 0;
  SchedulerUnderTest scheduler(policy);
  scheduler.pack(whole_storage(1, 100), kToDisk);
  EXPECT_EQ(scheduler.decision().place, Place::kDisk);
}

TEST(DiskScheduling, LastReleaseFreesTheSpaceOnTheDisk) {
  Policy policy = with_disk_buffer(1000);
  policy.disk_memory_bytes = 100;
  SchedulerUnderTest scheduler(policy);
  pack_to_disk(scheduler, 1);
  scheduler.release(0);
  scheduler.pack(whole_storage(1, 100), kToDisk);
  EXPECT_EQ(scheduler.decision().place, Place::kDisk);
}

TEST(DiskScheduling, EncodesBeforeTheDisk) {
  SchedulerUnderTest scheduler(with_disk_buffer(1000));
  const ResolvedPlacement encoded = {Place::kDisk, PlacementReason::kRule, 0, 25};
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), encoded),
            "take_disk 0, encode 0, copy_out 0, write_disk 0, wait_out 0, drop 0");
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0, decode 0");
}

TEST(DiskScheduling, ReloadsACopyThatAFullDeviceDropped) {
  Policy policy = with_disk_buffer(300);
  policy.prefetch_bytes = 100;
  SchedulerUnderTest scheduler(policy);
  pack_to_disk(scheduler, 4);
  EXPECT_EQ(scheduler.unpack(3), "copy_in 3, copy_in 2, wait_in 3");
  scheduler.release(3);
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(0), "read_disk 0, wait_in 2, drop 2, copy_in 0, wait_in 0, free_host 0");
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, wait_in 2");
}

}  // namespace
}  // namespace offprof

#include "engine/devices/virtual_gpu/races/stream_races.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/stream_race_fixture.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;

// ---- A correct engine causes no report.

TEST_F(StreamRaceTest, AcceptsAnOffloadWithAllWaits) {
  for (int step = 0; step < 3; ++step) {
    start_copy_out(0, 0);
    order_.kernel(kCompute, "matmul");
    follow(kCompute, kOut);
    give_back(0);
    hand_out(0);
    order_.kernel(kCompute, "relu");
    give_back(0);
  }
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceTest, AcceptsAReloadWithAllWaits) {
  start_copy_out(0, 0);
  follow(kCompute, kOut);
  give_back(0);
  for (int step = 0; step < 3; ++step) {
    order_.kernel(kCompute, "matmul");
    hand_out(1);
    follow(kIn, kCompute);
    copy_in(1, 0);
    follow(kCompute, kIn);
    order_.kernel(kCompute, "gelu_backward");
    give_back(1);
  }
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceTest, AcceptsAPinnedPieceReusedAfterComputeWaited) {
  for (int step = 0; step < 3; ++step) {
    order_.host_block_allocated(piece(0), kBlock);
    start_copy_out(0, 0);
    follow(kCompute, kOut);
    give_back(0);
    hand_out(1);
    follow(kIn, kCompute);
    copy_in(1, 0);
    follow(kCompute, kIn);
    order_.host_block_freed(piece(0));
    order_.kernel(kCompute, "gelu_backward");
    give_back(1);
  }
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceTest, AcceptsKernelsDuringACopy) {
  start_copy_out(0, 0);
  for (int i = 0; i < 5; ++i) order_.kernel(kCompute, "matmul");
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceTest, AcceptsTwoReadingCopies) {
  start_copy_out(0, 0);
  follow(kIn, kCompute);
  copy_out(1, 0, kIn);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceTest, ACopyOnTheBlocksOwnStreamNeedsNoWait) {
  order_.kernel(kCompute, "matmul");
  hand_out(0);
  copy_in(0, 0, kCompute);
  order_.kernel(kCompute, "gelu");
  copy_out(1, 0, kCompute);
  give_back(0);
  EXPECT_THAT(hazards(), IsEmpty());
}

// ---- Copies against kernels.

TEST_F(StreamRaceTest, ReportsACopyThatReadsABlockThatAKernelMayWrite) {
  hand_out(0);
  order_.set_op("aten::gelu");
  order_.kernel(kCompute, "gelu_kernel");
  order_.set_op("");
  copy_out(0, 0);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("a copy reads a block that a stream may still write",
                                               "kernel gelu_kernel in aten::gelu on stream 0",
                                               "D2H copy of 1024 bytes on stream 1")));
}

TEST_F(StreamRaceTest, ReportsAKernelLaunchedAfterThePointTheCopyWaitedFor) {
  hand_out(0);
  follow(kOut, kCompute);
  order_.kernel(kCompute, "gelu");
  copy_out(0, 0);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("a copy reads a block that a stream may still write",
                                               "kernel gelu on stream 0", testing::_)));
}

TEST_F(StreamRaceTest, AKernelBeforeTheHandOutDoesNotAffectAReader) {
  order_.kernel(kCompute, "gelu");
  hand_out(0);
  copy_out(0, 0);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceTest, ReportsACopyIntoANewBlockWhoseMemoryMayBeInUse) {
  order_.set_op("aten::matmul");
  order_.kernel(kCompute, "gemm");
  hand_out(0);
  order_.set_op("aten::reload");
  copy_in(0, 0);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("a copy writes a block whose memory a stream may still use",
                                               "kernel gemm in aten::matmul on stream 0",
                                               "H2D copy of 1024 bytes in aten::reload on stream 1")));
}

TEST_F(StreamRaceTest, AKernelAfterTheHandOutDoesNotAffectTheFirstWriter) {
  hand_out(0);
  order_.kernel(kCompute, "gemm");
  copy_in(0, 0);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceTest, ReportsACopyIntoABlockInUseAfterItsFirstCopy) {
  hand_out(0);
  copy_in(0, 0);
  follow(kCompute, kIn);
  order_.kernel(kCompute, "embedding");
  copy_in(0, 0);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("a copy writes a block whose memory a stream may still use",
                                               "kernel embedding on stream 0", testing::_)));
}

TEST_F(StreamRaceTest, AMemsetFollowsTheRulesOfACopy) {
  order_.kernel(kCompute, "gemm");
  hand_out(0);
  order_.set(kOther, block(0), kBlock);
  EXPECT_THAT(hazards(),
              ElementsAre(FieldsAre("a copy writes a block whose memory a stream may still use",
                                    "kernel gemm on stream 0", "memset of 1024 bytes on stream 1")));
}

TEST_F(StreamRaceTest, IgnoresKernelsOnOtherStreamsThanTheBlocks) {
  hand_out(0, kOther);
  order_.kernel(kCompute, "gemm");
  copy_out(0, 0);
  EXPECT_THAT(hazards(), IsEmpty());
}

// ---- Blocks under copies.

TEST_F(StreamRaceTest, ReportsABlockFreedUnderACopy) {
  start_copy_out(0, 0);
  order_.set_op("aten::mul");
  give_back(0);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("a block is freed while a copy may still access it",
                                               "D2H copy of 1024 bytes on stream 1",
                                               "block free of 1024 bytes in aten::mul on stream 0")));
}

TEST_F(StreamRaceTest, ReportsAFreedBlockOnceIfItIsHandedOutAgain) {
  start_copy_out(0, 0);
  give_back(0);
  hand_out(0);
  EXPECT_EQ(hazards().size(), 1);
}

TEST_F(StreamRaceTest, ReportsAReloadedBlockFreedBeforeComputeWaited) {
  hand_out(0);
  copy_in(0, 0);
  order_.kernel(kCompute, "gelu_backward");
  give_back(0);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("a block is freed while a copy may still access it",
                                               "H2D copy of 1024 bytes on stream 1", testing::_)));
}

TEST_F(StreamRaceTest, ReportsABlockHandedOutToAnotherStreamUnderACopy) {
  start_copy_out(0, 0);
  follow(kCompute, kOut);
  give_back(0);
  hand_out(0, kOther);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("a block is allocated while a copy may still access it",
                                               "D2H copy of 1024 bytes on stream 1",
                                               "block allocation of 1024 bytes on stream 2")));
}

TEST_F(StreamRaceTest, ReportsAHandedOutBlockThatPartlyOverlapsACopy) {
  start_copy_out(0, 0);
  order_.block_allocated(block(0) + kBlock / 2, kBlock, kOther);
  EXPECT_EQ(hazards().size(), 1);
}

TEST_F(StreamRaceTest, AcceptsABlockFreedAfterTheHostSawTheCopyEnd) {
  start_copy_out(0, 0);
  order_.stream_synchronised(kOut);
  give_back(0);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceTest, CudaFreeWaitsForTheDevice) {
  start_copy_out(0, 0);
  order_.segment_freed(device_.data(), 16 * kBlock);
  hand_out(0, kOther);
  EXPECT_THAT(hazards(), IsEmpty());
  EXPECT_EQ(order_.remembered(), 0);
}

TEST_F(StreamRaceTest, ReportsMemoryUnmappedUnderACopy) {
  start_copy_out(0, 0);
  order_.segment_unmapped(device_.data(), 16 * kBlock);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("device memory is unmapped during a copy",
                                               "D2H copy of 1024 bytes on stream 1",
                                               "unmapping device memory of 16384 bytes")));
}

TEST_F(StreamRaceTest, AcceptsMemoryUnmappedAfterTheHostSynchronised) {
  start_copy_out(0, 0);
  follow(kCompute, kOut);
  give_back(0);
  order_.stream_synchronised(kCompute);
  order_.segment_unmapped(device_.data(), 16 * kBlock);
  EXPECT_THAT(hazards(), IsEmpty());
}

// ---- Copies against copies.

TEST_F(StreamRaceTest, ReportsAReloadDuringTheCopyOut) {
  start_copy_out(0, 0);
  hand_out(1);
  follow(kIn, kCompute);
  copy_in(1, 0);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("two copies of the same memory are not ordered",
                                               "D2H copy of 1024 bytes on stream 1",
                                               "H2D copy of 1024 bytes on stream 2")));
}

TEST_F(StreamRaceTest, ReportsTwoCopiesIntoTheSameDeviceMemory) {
  hand_out(0);
  copy_in(0, 0);
  copy_in(0, 1, kOther);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("two copies of the same memory are not ordered",
                                               "H2D copy of 1024 bytes on stream 1",
                                               "H2D copy of 1024 bytes on stream 2")));
}

TEST_F(StreamRaceTest, AcceptsUnorderedCopiesOfNeighbouringMemory) {
  for (const Bytes index : {0, 1}) hand_out(index);
  copy_in(0, 0);
  copy_in(1, 1, kOther);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceTest, ACopyToPageableMemoryIsOrderedByTheHost) {
  hand_out(0);
  order_.copy(kOut, {piece(0), MemoryPlace::kPageable}, {block(0), MemoryPlace::kDevice}, kBlock);
  order_.copy(kIn, {block(0), MemoryPlace::kDevice}, {piece(0), MemoryPlace::kPageable}, kBlock);
  EXPECT_THAT(hazards(), IsEmpty());  // the host saw the end of the first copy before it requested the second
}

TEST_F(StreamRaceTest, ACopyFromPageableMemoryMayRunAfterTheCallReturns) {
  hand_out(0);
  order_.copy(kIn, {block(0), MemoryPlace::kDevice}, {piece(0), MemoryPlace::kPageable}, kBlock);
  give_back(0);
  EXPECT_EQ(hazards().size(), 1);
}

// ---- Pinned memory.

TEST_F(StreamRaceTest, ReportsAPieceReusedUnderACopy) {
  order_.host_block_allocated(piece(0), kBlock);
  start_copy_out(0, 0);
  order_.host_block_freed(piece(0));
  order_.host_block_allocated(piece(0), kBlock);
  hand_out(1);
  copy_out(0, 1, kOther);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("pinned memory is reused during a copy",
                                               "D2H copy of 1024 bytes on stream 1",
                                               "D2H copy of 1024 bytes on stream 2")));
}

TEST_F(StreamRaceTest, ReportsAPieceOverwrittenDuringItsReload) {
  order_.host_block_allocated(piece(0), kBlock);
  hand_out(0);
  copy_in(0, 0);
  order_.host_block_freed(piece(0));
  order_.host_block_allocated(piece(0), kBlock);
  hand_out(1);
  copy_out(0, 1);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("pinned memory is reused during a copy",
                                               "H2D copy of 1024 bytes on stream 1",
                                               "D2H copy of 1024 bytes on stream 2")));
}

TEST_F(StreamRaceTest, ReportsPinnedMemoryFreedUnderACopy) {
  start_copy_out(0, 0);
  follow(kCompute, kOut);  // orders compute, not the host
  order_.pinned_freed(host_.data(), 16 * kBlock);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("pinned memory is freed during a copy",
                                               "D2H copy of 1024 bytes on stream 1",
                                               "freeing pinned memory of 16384 bytes")));
}

TEST_F(StreamRaceTest, AcceptsPinnedMemoryFreedAfterTheHostWaited) {
  start_copy_out(0, 0);
  order_.event_recorded(event_, kOut);
  order_.event_synchronised(event_);
  order_.pinned_freed(host_.data(), 16 * kBlock);
  EXPECT_THAT(hazards(), IsEmpty());
}

}  // namespace
}  // namespace offprof

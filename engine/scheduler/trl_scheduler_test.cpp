#include <gtest/gtest.h>

#include "tests/support/command_lists.h"
#include "tests/support/scheduler_under_test.h"

namespace offprof {
namespace {

// The expected commands of each test follow from the rules in trl_scheduler.h. Threshold 1024 and forward
// stash 5 are TRL's defaults.
constexpr Bytes kLarge = 1024;
constexpr Bytes kSmall = 1023;

Policy trl() {
  return preset_policy("trl");
}

Policy trl_with_stash(std::int64_t count) {
  Policy policy = trl();
  policy.stash_count = count;
  return policy;
}

PackRequest request(Movability movability) {
  PackRequest request = whole_storage(1, kLarge);
  request.movability = movability;
  return request;
}

/// Scheduler with `count` offloaded tensors that backward must reload, and one more that is stashed.
class SchedulerWithDropped : public SchedulerUnderTest {
 public:
  explicit SchedulerWithDropped(int count) : SchedulerUnderTest(trl_with_stash(1)) {
    pack_many(count + 1, kLarge);  // each pack drops the tensor before it
  }
};

// --- Choice of tensors ---

TEST(TrlScheduler, OffloadsATensorAtTheThreshold) {
  SchedulerUnderTest scheduler(trl());
  EXPECT_EQ(scheduler.pack(kLarge), "copy_out 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kOffloaded, 0}));
}

TEST(TrlScheduler, KeepsATensorBelowTheThreshold) {
  SchedulerUnderTest scheduler(trl());
  EXPECT_EQ(scheduler.pack(kSmall), "keep 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kBelowThreshold, -1}));
}

TEST(TrlScheduler, KeepsATensorThatARuleKeepsAndGivesItNoId) {
  SchedulerUnderTest scheduler(trl_with_stash(2));
  const RuledPlacement kept = ResolvedPlacement{};
  EXPECT_EQ(scheduler.pack(kLarge), "copy_out 0");
  EXPECT_EQ(scheduler.pack(whole_storage(1, kLarge), kept), "keep 1");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kRule, -1}));
  EXPECT_EQ(scheduler.pack(kLarge), "copy_out 1");  // its id is 1, so the stash of 2 still has room
}

TEST(TrlScheduler, ComparesTheTensorWithTheThreshold) {
  SchedulerUnderTest scheduler(trl());
  PackRequest small_view = whole_storage(1, kLarge);
  small_view.tensor_bytes = kSmall;
  EXPECT_EQ(scheduler.pack(small_view), "keep 0");
}

TEST(TrlScheduler, CopiesTheTensorInsteadOfItsStorage) {
  SchedulerUnderTest scheduler(trl());
  PackRequest view = whole_storage(1, 10 * kLarge);
  view.tensor_bytes = kLarge;
  scheduler.pack(view);
  EXPECT_EQ(bytes_of(scheduler.commands().back()), kLarge);
}

TEST(TrlScheduler, KeepsAParameterItself) {
  SchedulerUnderTest scheduler(trl());
  PackRequest parameter = request(Movability::kParameter);
  parameter.is_parameter = true;
  EXPECT_EQ(scheduler.pack(parameter), "keep 0");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kParameter);
}

TEST(TrlScheduler, MovesAViewOfAParameter) {
  SchedulerUnderTest scheduler(trl());
  EXPECT_EQ(scheduler.pack(request(Movability::kParameter)), "copy_out 0");
}

TEST(TrlScheduler, MovesBuffersAndInputs) {
  SchedulerUnderTest scheduler(trl());
  EXPECT_EQ(scheduler.pack(request(Movability::kBuffer)), "copy_out 0");
  EXPECT_EQ(scheduler.pack(request(Movability::kInput)), "copy_out 1");
}

TEST(TrlScheduler, KeepsASmallViewOfAParameterBecauseOfItsSize) {
  SchedulerUnderTest scheduler(trl());
  PackRequest view = request(Movability::kParameter);
  view.tensor_bytes = kSmall;
  scheduler.pack(view);
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kBelowThreshold);
}

TEST(TrlScheduler, KeepsTensorsItCannotCopy) {
  SchedulerUnderTest scheduler(trl());
  EXPECT_EQ(scheduler.pack(request(Movability::kUnsupportedLayout)), "keep 0");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kUnsupportedLayout);
  EXPECT_EQ(scheduler.pack(request(Movability::kEmpty)), "keep 1");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kEmpty);
}

TEST(TrlScheduler, KeepsWhatBackwardHasUnpackedAndSavesAgain) {
  SchedulerUnderTest scheduler(trl());
  EXPECT_EQ(scheduler.pack(request(Movability::kUnpacked)), "keep 0");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kUnpacked);
}

TEST(TrlScheduler, KeepsEverythingWithoutAThreshold) {
  Policy policy = trl();
  policy.threshold_bytes = std::nullopt;
  SchedulerUnderTest scheduler(policy);
  EXPECT_EQ(scheduler.pack(kLarge), "keep 0");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kNothingOffloaded);
}

TEST(TrlScheduler, CopiesEachViewOfAStorageSeparately) {
  SchedulerUnderTest scheduler(trl());
  EXPECT_EQ(scheduler.pack(whole_storage(1, kLarge)), "copy_out 0");
  EXPECT_EQ(scheduler.pack(whole_storage(1, kLarge)), "copy_out 1");
}

TEST(TrlScheduler, NeedsNodeEnds) {
  const SchedulerUnderTest scheduler(trl());
  EXPECT_TRUE(scheduler.scheduler().needs_node_ends());
}

// --- Forward stash ---

TEST(TrlScheduler, ForwardStashDropsTheOldestBeforeTheOffload) {
  SchedulerUnderTest scheduler(trl_with_stash(2));
  EXPECT_EQ(scheduler.pack(kLarge), "copy_out 0");
  EXPECT_EQ(scheduler.pack(kLarge), "copy_out 1");
  EXPECT_EQ(scheduler.pack(kLarge), "wait_out 0, drop 0, copy_out 2");
}

TEST(TrlScheduler, StashIdsCountSmallTensors) {
  SchedulerUnderTest scheduler(trl_with_stash(2));
  scheduler.pack(kLarge);                                               // id 0
  scheduler.pack(kSmall);                                               // id 1
  EXPECT_EQ(scheduler.pack(kLarge), "wait_out 0, drop 0, copy_out 1");  // id 2: 0 <= 2 - 2
}

TEST(TrlScheduler, ASmallTensorDropsNothing) {
  SchedulerUnderTest scheduler(trl_with_stash(1));
  scheduler.pack(kLarge);
  EXPECT_EQ(scheduler.pack(kSmall), "keep 1");
}

TEST(TrlScheduler, AnOffloadDropsAllEntriesThatAreOldEnough) {
  SchedulerUnderTest scheduler(trl_with_stash(3));
  scheduler.pack_many(3, kLarge);  // ids 0 to 2
  scheduler.pack_many(1, kSmall);  // id 3
  // id 4: entries up to 4 - 3 are dropped
  EXPECT_EQ(scheduler.pack(kLarge), "wait_out 0, drop 0, wait_out 1, drop 1, copy_out 3");
}

TEST(TrlScheduler, AStashHitCopiesNothing) {
  SchedulerUnderTest scheduler(trl());
  scheduler.pack(kLarge);
  EXPECT_EQ(scheduler.unpack(0), "");
}

TEST(TrlScheduler, TheFirstNodeThatUnpacksAnOffloadedTensorEmptiesTheStashWhenItEnds) {
  SchedulerUnderTest scheduler(trl());
  scheduler.pack_many(2, kLarge);
  scheduler.unpack(1);
  // Copy 1 is unpacked, so its host memory is freed too; copy 0 is still needed.
  EXPECT_EQ(scheduler.node_end({1}), "wait_out 0, drop 0, wait_out 1, drop 1, free_host 1");
}

TEST(TrlScheduler, ANodeThatUnpacksOnlyKeptTensorsLeavesTheStash) {
  SchedulerUnderTest scheduler(trl());
  scheduler.pack(kLarge);
  scheduler.pack(kSmall);
  EXPECT_EQ(scheduler.unpack(1), "release_kept 1");
  EXPECT_EQ(scheduler.node_end({1}), "");
}

TEST(TrlScheduler, APackDuringBackwardMayDropAnUnpackedStashEntry) {
  SchedulerUnderTest scheduler(trl_with_stash(1));
  scheduler.pack(kLarge);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.pack(kLarge), "wait_out 0, drop 0, free_host 0, copy_out 1");
}

// --- Reload and backward stash ---

TEST(TrlScheduler, ReloadsOnDemandAndFreesTheHostMemory) {
  SchedulerWithDropped scheduler(1);
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0, free_host 0");
}

TEST(TrlScheduler, HoldsAReloadUntilTheNextNodeThatUnpacksAnOffloadedTensor) {
  SchedulerWithDropped scheduler(2);
  scheduler.unpack(1);
  EXPECT_EQ(scheduler.node_end({1}), "wait_out 2, drop 2");  // the forward stash; copy 1 stays
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.node_end({0}), "drop 1");
}

TEST(TrlScheduler, ANodeWithoutOffloadedTensorsDoesNotEndTheHold) {
  SchedulerUnderTest scheduler(trl_with_stash(1));
  scheduler.pack(kSmall);
  scheduler.pack_many(3, kLarge);  // tensors 1 to 3, copies 0 to 2
  scheduler.unpack(2);
  scheduler.node_end({2});
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.node_end({0}), "");
  scheduler.unpack(1);
  EXPECT_EQ(scheduler.node_end({1}), "drop 1");
}

TEST(TrlScheduler, AStashHitEndsTheHoldOfThePreviousNode) {
  SchedulerWithDropped scheduler(1);  // copy 0 dropped, copy 1 stashed
  scheduler.unpack(0);
  scheduler.unpack(1);  // the same node
  EXPECT_EQ(scheduler.node_end({0, 1}), "wait_out 1, drop 1, free_host 1");
  scheduler.pack(kLarge);  // copy 2, in the stash
  scheduler.unpack(2);
  EXPECT_EQ(scheduler.node_end({2}), "wait_out 2, drop 2, free_host 2, drop 0");
}

TEST(TrlScheduler, DropsAReloadUsedBeyondItsNodeWhenThatNodeEnds) {
  SchedulerWithDropped scheduler(2);
  scheduler.unpack(1);
  EXPECT_EQ(scheduler.node_end({1}, {1}), "drop 1, wait_out 2, drop 2");
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.node_end({0}), "");  // nothing is left to drop
}

TEST(TrlScheduler, AStashHitUsedBeyondItsNodeIsDroppedWithTheStash) {
  SchedulerUnderTest scheduler(trl());
  scheduler.pack(kLarge);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.node_end({0}, {0}), "wait_out 0, drop 0, free_host 0");
}

TEST(TrlScheduler, BackwardEndDropsTheRest) {
  SchedulerWithDropped scheduler(2);
  scheduler.unpack(1);
  scheduler.unpack(0);
  scheduler.node_end({1, 0});
  EXPECT_EQ(scheduler.backward_end(), "drop 1, drop 0");
  EXPECT_EQ(scheduler.backward_end(), "");
}

// --- Release ---

TEST(TrlScheduler, ReleaseOfAnUnpackedTensorDoesNothing) {
  SchedulerUnderTest scheduler(trl());
  scheduler.pack(kLarge);
  scheduler.pack(kSmall);
  scheduler.unpack(0);
  scheduler.unpack(1);
  EXPECT_EQ(scheduler.release(0), "");
  EXPECT_EQ(scheduler.release(1), "");
}

TEST(TrlScheduler, ReleaseFreesATensorThatIsNeverUnpacked) {
  SchedulerWithDropped scheduler(1);  // copy 0 dropped, copy 1 stashed
  scheduler.pack(kSmall);
  EXPECT_EQ(scheduler.release(0), "free_host 0");
  EXPECT_EQ(scheduler.release(1), "wait_out 1, drop 1, free_host 1");
  EXPECT_EQ(scheduler.release(2), "release_kept 2");
  EXPECT_EQ(scheduler.backward_end(), "");
}

TEST(TrlScheduler, ASecondUnpackGivesNoCommand) {
  SchedulerWithDropped scheduler(1);
  scheduler.unpack(0);
  EXPECT_EQ(scheduler.unpack(0), "");
}

// --- A whole step ---

TEST(TrlScheduler, AStepOfFourLayers) {
  SchedulerUnderTest scheduler(trl_with_stash(2));
  EXPECT_EQ(scheduler.pack(kLarge), "copy_out 0");
  EXPECT_EQ(scheduler.pack(kLarge), "copy_out 1");
  EXPECT_EQ(scheduler.pack(kLarge), "wait_out 0, drop 0, copy_out 2");
  EXPECT_EQ(scheduler.pack(kLarge), "wait_out 1, drop 1, copy_out 3");

  EXPECT_EQ(scheduler.unpack(3), "");
  EXPECT_EQ(scheduler.node_end({3}), "wait_out 2, drop 2, wait_out 3, drop 3, free_host 3");
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, wait_in 2, free_host 2");
  EXPECT_EQ(scheduler.node_end({2}), "");
  EXPECT_EQ(scheduler.unpack(1), "copy_in 1, wait_in 1, free_host 1");
  EXPECT_EQ(scheduler.node_end({1}), "drop 2");
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0, free_host 0");
  EXPECT_EQ(scheduler.node_end({0}), "drop 1");
  EXPECT_EQ(scheduler.backward_end(), "drop 0");
}

}  // namespace
}  // namespace offprof

#include <gtest/gtest.h>

#include "tests/support/scheduler_under_test.h"

namespace offprof {
namespace {

/// Recomputations: tensor 1 from tensor 0, tensor 2 from 1, tensor 2 from 0 and 1.
const Recomputation kFromFirst = {1, "aten::gelu", {0}};
const Recomputation kFromSecond = {2, "aten::relu", {1}};
const Recomputation kFromBoth = {2, "aten::mul", {0, 1}};

ResolvedPlacement recomputed(const Recomputation& recomputation) {
  ResolvedPlacement placement{Place::kRecompute};
  placement.recomputation = &recomputation;
  return placement;
}

/// Returns a policy that keeps every tensor that no rule moves.
Policy rules_alone(std::int64_t stash = 0, Bytes prefetch = 0) {
  Policy policy = preset_policy("keep");
  policy.stash_count = stash;
  policy.prefetch_bytes = prefetch;
  return policy;
}

constexpr ResolvedPlacement kToHost = {Place::kHost};

TEST(OffloadSchedulerRecompute, DropsATensorAndRecomputesItAtItsUnpack) {
  SchedulerUnderTest scheduler(rules_alone());
  EXPECT_EQ(scheduler.pack(whole_storage(1, 10)), "keep 0");
  EXPECT_EQ(scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst)), "drop_for_recompute 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kRecompute, PlacementReason::kRule, 0}));
  EXPECT_EQ(scheduler.unpack(1), "recompute 0");
  EXPECT_EQ(scheduler.commands().back(), (Command{Recompute{{1, 0, 20}}}));
  EXPECT_EQ(scheduler.unpack(1), "");
  EXPECT_EQ(scheduler.release(1), "drop 0");
  EXPECT_EQ(scheduler.release(0), "release_kept 0");
}

TEST(OffloadSchedulerRecompute, HoldsASourceUntilTheRecomputation) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 10));
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  EXPECT_EQ(scheduler.release(0), "");
  EXPECT_EQ(scheduler.unpack(1), "recompute 0, release_kept 0");
  EXPECT_EQ(scheduler.release(1), "drop 0");
}

TEST(OffloadSchedulerRecompute, ReloadsASourceFirstAndKeepsItForItsOwnUse) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 10), kToHost);
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  EXPECT_EQ(scheduler.unpack(1), "copy_in 0, wait_in 0, recompute 1");
  EXPECT_EQ(scheduler.unpack(0), "");
  EXPECT_EQ(scheduler.release(0), "drop 0, free_host 0");
}

TEST(OffloadSchedulerRecompute, HoldsAnOffloadedSourceToo) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 10), kToHost);
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  EXPECT_EQ(scheduler.release(0), "");
  EXPECT_EQ(scheduler.unpack(1), "copy_in 0, wait_in 0, recompute 1, drop 0, free_host 0");
}

TEST(OffloadSchedulerRecompute, DecodesAnEncodedSourceFirst) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 80), ResolvedPlacement{Place::kDevice, PlacementReason::kRule, 0, 10});
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  EXPECT_EQ(scheduler.unpack(1), "decode 0, recompute 1");
}

TEST(OffloadSchedulerRecompute, RecomputesAChainFromItsBeginning) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 10), kToHost);
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  scheduler.pack(whole_storage(3, 30), recomputed(kFromSecond));
  EXPECT_EQ(scheduler.unpack(2), "copy_in 0, wait_in 0, recompute 1, recompute 2");
  EXPECT_EQ(scheduler.unpack(1), "");
  EXPECT_EQ(scheduler.release(1), "drop 1");
}

TEST(OffloadSchedulerRecompute, DropsAReleasedLinkOfAChainAfterItsUse) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 10));
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  scheduler.pack(whole_storage(3, 30), recomputed(kFromSecond));
  EXPECT_EQ(scheduler.release(0) + scheduler.release(1), "");
  EXPECT_EQ(scheduler.unpack(2), "recompute 0, release_kept 0, recompute 1, drop 0");
}

TEST(OffloadSchedulerRecompute, DoesNotRecomputeATensorThatIsNeverUnpacked) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 10));
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  scheduler.release(0);
  EXPECT_EQ(scheduler.release(1), "release_kept 0");
}

TEST(OffloadSchedulerRecompute, RecomputesTensorsOfOneContentOnce) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 10));
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  EXPECT_EQ(scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst)), "");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kRecompute, PlacementReason::kSharedCopy, 0}));
  EXPECT_EQ(scheduler.unpack(2), "recompute 0");
  EXPECT_EQ(scheduler.release(2), "");
  EXPECT_EQ(scheduler.unpack(1), "");
  EXPECT_EQ(scheduler.release(1), "drop 0");
}

TEST(OffloadSchedulerRecompute, KeepsATensorWhoseSourceIsGone) {
  for (const RuledPlacement& source : {RuledPlacement(), RuledPlacement(kToHost)}) {
    SchedulerUnderTest scheduler(rules_alone());
    scheduler.pack(whole_storage(1, 10), source);
    scheduler.release(0);
    EXPECT_EQ(scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst)), "keep 1");
    EXPECT_EQ(scheduler.decision().reason, PlacementReason::kUnfitToRecompute);
  }
}

TEST(OffloadSchedulerRecompute, PrefetchReloadsTheSourcesOfTheNextTensor) {
  SchedulerUnderTest scheduler(rules_alone(0, 100), {3, 2, 1, 0});
  scheduler.pack(whole_storage(1, 10), kToHost);
  scheduler.pack(whole_storage(2, 20), kToHost);
  scheduler.pack(whole_storage(3, 30), recomputed(kFromBoth));
  scheduler.pack(whole_storage(4, 40), kToHost);
  EXPECT_EQ(scheduler.unpack(3), "copy_in 3, copy_in 0, copy_in 1, wait_in 3");
  EXPECT_EQ(scheduler.unpack(2), "wait_in 0, wait_in 1, recompute 2");
}

TEST(OffloadSchedulerRecompute, PrefetchRespectsItsWindow) {
  SchedulerUnderTest scheduler(rules_alone(0, 15), {3, 2, 1, 0});
  scheduler.pack(whole_storage(1, 10), kToHost);
  scheduler.pack(whole_storage(2, 20), kToHost);
  scheduler.pack(whole_storage(3, 30), recomputed(kFromBoth));
  scheduler.pack(whole_storage(4, 40), kToHost);
  EXPECT_EQ(scheduler.unpack(3), "copy_in 3, copy_in 0, wait_in 3");
  EXPECT_EQ(scheduler.unpack(2), "copy_in 1, wait_in 0, wait_in 1, recompute 2");
}

TEST(OffloadSchedulerRecompute, DropsTheStashIfTheDeviceHasNoMemoryToRecompute) {
  SchedulerUnderTest scheduler(rules_alone(2));
  scheduler.pack(whole_storage(1, 10));
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  scheduler.pack(whole_storage(3, 30), kToHost);
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(1), "wait_out 1, drop 1, recompute 0");
}

TEST(OffloadSchedulerRecompute, DoesNotDropSourcesToMakeRoom) {
  SchedulerUnderTest scheduler(rules_alone(2));
  scheduler.pack(whole_storage(1, 10), kToHost);
  scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst));
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(1), "recompute 1");
}

TEST(OffloadSchedulerRecompute, RecomputedTensorsTakeNoHostMemory) {
  Policy policy = rules_alone();
  policy.host_memory_bytes = 0;
  SchedulerUnderTest scheduler(policy);
  scheduler.pack(whole_storage(1, 10));
  EXPECT_EQ(scheduler.pack(whole_storage(2, 20), recomputed(kFromFirst)), "drop_for_recompute 0");
}

TEST(OffloadSchedulerRecompute, KeepsTensorsThatMayNotMove) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 10));
  PackRequest input = whole_storage(2, 20);
  input.movability = Movability::kInput;
  EXPECT_EQ(scheduler.pack(input, recomputed(kFromFirst)), "keep 1");
}

}  // namespace
}  // namespace offprof

#include <gtest/gtest.h>

#include "tests/support/command_lists.h"
#include "tests/support/scheduler_under_test.h"

namespace offprof {
namespace {

/// Returns a policy under which only rules move tensors.
Policy rules_alone(std::int64_t stash = 0, Bytes prefetch = 0) {
  Policy policy = preset_policy("keep");
  policy.stash_count = stash;
  policy.prefetch_bytes = prefetch;
  return policy;
}

constexpr ResolvedPlacement kToHost = {Place::kHost};
constexpr ResolvedPlacement kOnDevice = {Place::kDevice};

ResolvedPlacement encoded(Place place, Bytes encoded_bytes) {
  return {place, PlacementReason::kRule, 0, encoded_bytes};
}

TEST(OffloadSchedulerRules, ARulePlacesATensorRegardlessOfTheThreshold) {
  SchedulerUnderTest scheduler(rules_alone());
  EXPECT_EQ(scheduler.pack(whole_storage(1, 10), kToHost), "copy_out 0, wait_out 0, drop 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kHost, PlacementReason::kRule, 0}));
  SchedulerUnderTest all(preset_policy("offload"));
  EXPECT_EQ(all.pack(whole_storage(1, 10), kOnDevice), "keep 0");
  EXPECT_EQ(all.decision(), (PackDecision{Place::kDevice, PlacementReason::kRule, -1}));
}

TEST(OffloadSchedulerRules, WithoutAMatchingRuleThePolicyDecides) {
  SchedulerUnderTest scheduler(rules_alone());
  EXPECT_EQ(scheduler.pack(whole_storage(1, 10)), "keep 0");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kNothingOffloaded);
}

TEST(OffloadSchedulerRules, KeepsTensorsThatMayNotMoveDespiteARule) {
  SchedulerUnderTest scheduler(rules_alone());
  PackRequest parameter = whole_storage(1, 10);
  parameter.movability = Movability::kParameter;
  EXPECT_EQ(scheduler.pack(parameter, kToHost), "keep 0");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kParameter);
}

TEST(OffloadSchedulerRules, AnEncodedTensorStaysOnTheDevice) {
  SchedulerUnderTest scheduler(rules_alone());
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), encoded(Place::kDevice, 25)), "encode 0");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kRule, 0}));
  EXPECT_EQ(scheduler.unpack(0), "decode 0");
  EXPECT_EQ(scheduler.unpack(0), "");
  EXPECT_EQ(scheduler.release(0), "drop 0");
}

TEST(OffloadSchedulerRules, EncodedBytesGoOutAndComeBack) {
  SchedulerUnderTest scheduler(rules_alone());
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), encoded(Place::kHost, 25)),
            "encode 0, copy_out 0, wait_out 0, drop 0");
  EXPECT_EQ(scheduler.unpack(0), "copy_in 0, wait_in 0, decode 0");
  EXPECT_EQ(scheduler.release(0), "drop 0, free_host 0");
  const std::vector<Bytes> expected = {25, 25, 25, 25, 25, 25, 100, 100, 25};
  std::vector<Bytes> bytes;
  for (const Command& command : scheduler.commands()) bytes.push_back(bytes_of(command));
  EXPECT_EQ(bytes, expected);
}

TEST(OffloadSchedulerRules, TheStashHoldsEncodedTensors) {
  SchedulerUnderTest scheduler(rules_alone(1));
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), encoded(Place::kHost, 25)), "encode 0, copy_out 0");
  EXPECT_EQ(scheduler.pack(whole_storage(2, 100), encoded(Place::kHost, 25)),
            "wait_out 0, drop 0, encode 1, copy_out 1");
  EXPECT_EQ(scheduler.unpack(1), "wait_out 1, decode 1");
  EXPECT_EQ(scheduler.release(1), "drop 1, free_host 1");
}

TEST(OffloadSchedulerRules, PrefetchReloadsEncodedBytesAndDecodesOnDemand) {
  SchedulerUnderTest scheduler(rules_alone(0, 25));
  for (int i = 1; i <= 3; ++i) scheduler.pack(whole_storage(i, 100), encoded(Place::kHost, 25));
  EXPECT_EQ(scheduler.unpack(2), "copy_in 2, copy_in 1, wait_in 2, decode 2");
  EXPECT_EQ(scheduler.unpack(1), "copy_in 0, wait_in 1, decode 1");
}

TEST(OffloadSchedulerRules, TensorsOfOneContentShareAnEncodedCopy) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 100), encoded(Place::kDevice, 25));
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), encoded(Place::kDevice, 25)), "");
  EXPECT_EQ(scheduler.decision(), (PackDecision{Place::kDevice, PlacementReason::kSharedCopy, 0}));
  EXPECT_EQ(scheduler.unpack(1), "decode 0");
  EXPECT_EQ(scheduler.release(1), "");
  EXPECT_EQ(scheduler.unpack(0), "");
  EXPECT_EQ(scheduler.release(0), "drop 0");
}

TEST(OffloadSchedulerRules, TheHostMemoryLimitCountsEncodedBytes) {
  Policy policy = rules_alone();
  policy.host_memory_bytes = 30;
  SchedulerUnderTest scheduler(policy);
  EXPECT_EQ(scheduler.pack(whole_storage(1, 100), encoded(Place::kHost, 25)),
            "encode 0, copy_out 0, wait_out 0, drop 0");
  EXPECT_EQ(scheduler.pack(whole_storage(2, 100), encoded(Place::kHost, 25)), "keep 1");
  EXPECT_EQ(scheduler.decision().reason, PlacementReason::kHostFull);
  EXPECT_EQ(scheduler.pack(whole_storage(3, 100), encoded(Place::kDevice, 25)), "encode 1");
}

TEST(OffloadSchedulerRules, DropsATensorThatIsNeverUnpackedInEncodedForm) {
  SchedulerUnderTest scheduler(rules_alone());
  scheduler.pack(whole_storage(1, 100), encoded(Place::kDevice, 25));
  EXPECT_EQ(scheduler.release(0), "drop 0");
  EXPECT_EQ(bytes_of(scheduler.commands().back()), 25);
}

TEST(OffloadSchedulerRules, DropsTheStashIfTheDeviceHasNoMemoryToDecode) {
  SchedulerUnderTest scheduler(rules_alone(2));
  scheduler.pack(whole_storage(1, 100), encoded(Place::kHost, 25));
  scheduler.pack(whole_storage(2, 100), encoded(Place::kDevice, 25));
  scheduler.refuse_next(1);
  EXPECT_EQ(scheduler.unpack(1), "wait_out 0, drop 0, decode 1");
}

}  // namespace
}  // namespace offprof

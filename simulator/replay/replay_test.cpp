#include "simulator/replay/replay.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/sample_program.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// A byte takes one nanosecond in either direction.
constexpr Link kLink{{1e9, 0}, {1e9, 0}};

Policy offload() {
  return preset_policy("offload");
}

Policy with_stash(std::int64_t count) {
  Policy policy = offload();
  policy.stash_count = count;
  return policy;
}

Policy with_prefetch(Bytes bytes) {
  Policy policy = offload();
  policy.prefetch_bytes = bytes;
  return policy;
}

Policy trl(Bytes threshold, std::int64_t stash) {
  Policy policy = preset_policy("trl");
  policy.threshold_bytes = threshold;
  policy.stash_count = stash;
  return policy;
}

Metrics metrics_of(const ProgramSketch& sketch, const Policy& policy, const Link& link = kLink) {
  return replay(Step(sketch.program()), policy, link).metrics;
}

Bytes peak_of(const ProgramSketch& sketch, const Policy& policy) {
  return *metrics_of(sketch, policy).device_peak_bytes;
}

/// Two layers over 1000 resident bytes. x of 100 bytes and y of 200 bytes are saved; backward begins with a
/// gradient of 150 bytes.
ProgramSketch two_layers() {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  const std::int32_t y = sketch.alloc(200);
  const SavedId b = sketch.save(y);
  sketch.free(x);
  sketch.free(y);
  const std::int32_t gradient_y = sketch.alloc(150);
  sketch.node(b);
  const std::int32_t gradient_x = sketch.alloc(60);
  sketch.free(gradient_y);
  sketch.node(a);
  sketch.free(gradient_x);
  sketch.backward_end();
  return sketch;
}

// --- Memory ---

TEST(Replay, KeepHoldsSavedTensorsUntilTheirRelease) {
  // x and y stay until their nodes: 1000 + 100 + 200 + the gradient's 150.
  EXPECT_EQ(peak_of(two_layers(), preset_policy("keep")), 1450);
}

TEST(Replay, OffloadHoldsOnlyTheProgramsMemory) {
  // Forward: x and y, 1300. Backward: the gradient and the reload of y, 1000 + 150 + 200.
  EXPECT_EQ(peak_of(two_layers(), offload()), 1350);
}

TEST(Replay, AStashHoldsItsEntriesThroughForward) {
  // Both are stashed: x and y are on the device when the gradient is allocated, as under keep.
  EXPECT_EQ(peak_of(two_layers(), with_stash(2)), 1450);
  // Only y is stashed: 1000 + 200 + 150.
  EXPECT_EQ(peak_of(two_layers(), with_stash(1)), 1350);
}

TEST(Replay, APrefetchTakesMemoryEarly) {
  // x is reloaded while y is on the device: 1000 + 150 + 200 + 100.
  EXPECT_EQ(peak_of(two_layers(), with_prefetch(100)), 1450);
  EXPECT_EQ(peak_of(two_layers(), with_prefetch(99)), 1350);
}

TEST(Replay, AThresholdKeepsSmallerTensors) {
  Policy policy = offload();
  policy.threshold_bytes = 200;
  // x stays: 1000 + 100 + the gradient's 150 + the reload of y.
  EXPECT_EQ(peak_of(two_layers(), policy), 1450);
}

TEST(Replay, ATensorSavedWhileTheProgramHoldsItTakesNoExtraMemory) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  sketch.node(a);
  sketch.free(x);
  EXPECT_EQ(peak_of(sketch, preset_policy("keep")), 1100);
}

TEST(Replay, AReloadTakesMemoryBesideTheProgramsOwnStorage) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  sketch.node(sketch.save(x));
  sketch.free(x);
  EXPECT_EQ(peak_of(sketch, offload()), 1200);
}

TEST(Replay, TensorsOfOneStorageShareAReload) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x), b = sketch.save_part(x, 30);
  sketch.free(x);
  sketch.unpack(a);
  sketch.unpack(b);
  sketch.node_end();
  sketch.release(a);
  sketch.release(b);
  const Metrics metrics = metrics_of(sketch, offload());
  EXPECT_EQ(metrics.device_peak_bytes, 1100);
  EXPECT_EQ(metrics.d2h_bytes, 100);
  EXPECT_EQ(metrics.h2d_bytes, 100);
}

TEST(Replay, TwoVersionsOfAStorageHaveTwoReloads) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x, 0), b = sketch.save(x, 1);
  sketch.free(x);
  sketch.unpack(a);
  sketch.unpack(b);
  sketch.node_end();
  sketch.release(a);
  sketch.release(b);
  const Metrics metrics = metrics_of(sketch, offload());
  EXPECT_EQ(metrics.device_peak_bytes, 1200);
  EXPECT_EQ(metrics.h2d_bytes, 200);
  EXPECT_EQ(metrics.host_peak_bytes, 200);
}

TEST(Replay, ATensorThatEscapesItsNodeLivesUntilItsRelease) {
  const auto escaping = [](bool escapes) {
    ProgramSketch sketch(1000);
    const std::int32_t x = sketch.alloc(100);
    const SavedId a = sketch.save(x);
    if (escapes) sketch.escapes(a);
    sketch.free(x);
    sketch.node(a);
    sketch.free(sketch.alloc(70));
    if (escapes) sketch.free_unpacked(a);
    sketch.free(sketch.alloc(80));
    return sketch;
  };
  for (const char* policy : {"keep", "offload"}) {
    EXPECT_EQ(peak_of(escaping(false), preset_policy(policy)), 1100) << policy;
    // x is live with the 70 bytes, but not with the 80.
    EXPECT_EQ(peak_of(escaping(true), preset_policy(policy)), 1170) << policy;
  }
}

TEST(Replay, ANodeHoldsUnpackedTensorsToItsEnd) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  sketch.free(x);
  sketch.unpack(a);
  sketch.release(a);  // before the node's end, as when a graph is torn down within it
  sketch.free(sketch.alloc(70));
  sketch.node_end();
  sketch.free(sketch.alloc(80));
  EXPECT_EQ(peak_of(sketch, preset_policy("keep")), 1170);
  EXPECT_EQ(peak_of(sketch, offload()), 1170);
}

TEST(Replay, ATensorUnpackedTwiceIsHeldOnce) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  sketch.free(x);
  sketch.unpack(a);
  sketch.unpack(a);
  sketch.node_end();
  sketch.release(a);
  sketch.free(sketch.alloc(100));
  EXPECT_EQ(peak_of(sketch, offload()), 1100);
}

TEST(Replay, AResidentThatTheStepFreesMakesRoom) {
  ProgramSketch sketch(1000);
  sketch.free(sketch.resident(300));
  sketch.free(sketch.alloc(350));
  EXPECT_EQ(peak_of(sketch, preset_policy("keep")), 1050);
}

TEST(Replay, ASavedResidentStaysAfterTheStepFreesIt) {
  ProgramSketch sketch(1000);
  const std::int32_t old = sketch.resident(300);
  const SavedId a = sketch.save(old, 0, Movability::kResident);
  sketch.free(old);
  sketch.free(sketch.alloc(350));
  sketch.node(a);
  EXPECT_EQ(peak_of(sketch, offload()), 1350);
}

TEST(Replay, MovingAParametersViewUnderTrlFreesNothing) {
  ProgramSketch sketch(1000);
  const std::int32_t weight = sketch.resident(300, StorageRole::kParameter);
  const SavedId view = sketch.save(weight, 0, Movability::kParameter);
  sketch.save(weight, 0, Movability::kParameter);  // replaces the view in the stash
  sketch.node(view);
  EXPECT_EQ(peak_of(sketch, trl(1, 1)), 1300);  // it comes back beside the parameter
  EXPECT_EQ(peak_of(sketch, offload()), 1000);
}

/// Three tensors of 100 bytes; the nodes allocate nothing.
ProgramSketch three_saved() {
  ProgramSketch sketch(1000);
  std::vector<SavedId> saved;
  for (int i = 0; i < 3; ++i) {
    const std::int32_t x = sketch.alloc(100);
    saved.push_back(sketch.save(x));
    sketch.free(x);
  }
  for (int i = 3; i-- > 0;) sketch.node(saved[static_cast<std::size_t>(i)]);
  sketch.backward_end();
  sketch.free(sketch.alloc(150));
  return sketch;
}

TEST(Replay, TrlHoldsAReloadThroughTheNextNode) {
  // Stash 1: one entry and the new tensor, 1200. Backward: the last tensor comes from the stash. The reload
  // of the second is still on the device when the first is reloaded, 1200. Then all are released, and 150 fit
  // below that.
  EXPECT_EQ(peak_of(three_saved(), trl(1, 1)), 1200);
  EXPECT_EQ(peak_of(three_saved(), offload()), 1150);
}

TEST(Replay, TrlCopiesTheTensorAndNotItsStorage) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId part = sketch.save_part(x, 30);
  sketch.free(x);
  const SavedId other = sketch.save(sketch.alloc(10));
  sketch.node(part);
  sketch.node(other);
  const Metrics metrics = metrics_of(sketch, trl(20, 0));
  EXPECT_EQ(metrics.d2h_bytes, 30);
  EXPECT_EQ(metrics.host_peak_bytes, 30);
}

TEST(Replay, HostBytesAreThoseOfLiveCopies) {
  // Both copies live at the end of forward.
  EXPECT_EQ(metrics_of(two_layers(), offload()).host_peak_bytes, 300);
  EXPECT_EQ(metrics_of(two_layers(), preset_policy("keep")).host_peak_bytes, 0);
}

TEST(Replay, CapsHostMemory) {
  Policy policy = offload();
  policy.host_memory_bytes = 250;
  const Metrics metrics = metrics_of(two_layers(), policy);
  EXPECT_EQ(metrics.host_peak_bytes, 100);  // y has no room beside x
  // y stays; x comes back only after the gradient of y is freed: 1000 + 200 + 150.
  EXPECT_EQ(metrics.device_peak_bytes, 1350);
}

TEST(Replay, CopiedBytesCountEachCopy) {
  const Metrics metrics = metrics_of(two_layers(), with_stash(1));
  EXPECT_EQ(metrics.d2h_bytes, 300);
  EXPECT_EQ(metrics.h2d_bytes, 100);  // y comes from the stash
}

TEST(Replay, ReportsTheProgramsResidentBytes) {
  EXPECT_EQ(metrics_of(two_layers(), offload()).device_resident_bytes, 1000);
}

TEST(Replay, LeavesTheFiguresOfCachingAllocatorsAbsent) {
  EXPECT_FALSE(metrics_of(two_layers(), offload()).device_allocated_peak_bytes);
  EXPECT_FALSE(metrics_of(two_layers(), offload()).device_reserved_peak_bytes);
}

TEST(Replay, ReportsTheEventOfThePeak) {
  const ProgramSketch sketch = two_layers();
  const Step step(sketch.program());
  const Prediction keep = replay(step, preset_policy("keep"), kLink);
  EXPECT_EQ(step.events()[keep.peak_event], (Event{EventKind::kAlloc, 2, 0}));  // the gradient
  const Prediction offloaded = replay(step, offload(), kLink);
  EXPECT_EQ(step.events()[offloaded.peak_event], (Event{EventKind::kUnpack, 1, 0}));  // the reload of y
}

// --- Time ---

/// Saves 100 bytes; backward unpacks them after 70 ns of forward and 500 ns of backward.
ProgramSketch timed() {
  ProgramSketch sketch;
  const std::int32_t x = sketch.alloc(100);
  sketch.compute(10);
  const SavedId a = sketch.save(x);
  sketch.compute(70);
  sketch.free(x);
  sketch.compute(500);
  sketch.node(a);
  sketch.compute(20);
  sketch.phase("end");
  return sketch;
}

TEST(Replay, WithoutCopiesTheStepTimeIsComputeTime) {
  const Metrics metrics = metrics_of(timed(), preset_policy("keep"));
  EXPECT_EQ(metrics.step_time_ns, 600);
  EXPECT_EQ(metrics.compute_ns, 600);
  EXPECT_EQ(metrics.exposed_ns, 0);
  EXPECT_FALSE(metrics.overlap_ratio);
}

TEST(Replay, WithoutAStashEveryCopyStalls) {
  const Metrics metrics = metrics_of(timed(), offload());
  EXPECT_EQ(metrics.exposed_ns, 200);
  EXPECT_EQ(metrics.step_time_ns, 800);
  EXPECT_EQ(metrics.compute_ns, 600);
  EXPECT_EQ(metrics.d2h_busy_ns, 100);
  EXPECT_EQ(metrics.h2d_busy_ns, 100);
  EXPECT_DOUBLE_EQ(*metrics.overlap_ratio, 0);
}

TEST(Replay, AStashHidesTheCopyOut) {
  const Metrics metrics = metrics_of(timed(), with_stash(1));
  EXPECT_EQ(metrics.exposed_ns, 0);
  EXPECT_EQ(metrics.d2h_busy_ns, 100);
  EXPECT_DOUBLE_EQ(*metrics.overlap_ratio, 1);
}

TEST(Replay, AFullStashWaitsForItsOldestCopy) {
  ProgramSketch sketch;
  for (int i = 0; i < 2; ++i) {
    sketch.save(sketch.alloc(100));
    sketch.compute(30);
  }
  sketch.phase("end");
  const Metrics metrics = metrics_of(sketch, with_stash(1));
  EXPECT_EQ(metrics.exposed_ns, 70);  // 30 of the first copy's 100 are hidden
  EXPECT_EQ(metrics.step_time_ns, 130);
}

TEST(Replay, PrefetchHidesReloads) {
  ProgramSketch sketch;
  std::vector<SavedId> saved;
  for (int i = 0; i < 2; ++i) saved.push_back(sketch.save(sketch.alloc(100)));
  for (const SavedId tensor : {saved[1], saved[0]}) {
    sketch.unpack(tensor);
    sketch.compute(60);
    sketch.node_end();
  }
  EXPECT_EQ(metrics_of(sketch, offload()).exposed_ns, 200 + 200);  // copies out and in, all stall
  // 60 ns of compute hide a part of the second reload.
  EXPECT_EQ(metrics_of(sketch, with_prefetch(100)).exposed_ns, 200 + 140);
}

TEST(Replay, UnderTrlReloadsQueueBehindCopiesOut) {
  ProgramSketch sketch;
  std::vector<SavedId> saved;
  for (int i = 0; i < 3; ++i) saved.push_back(sketch.save(sketch.alloc(100)));
  sketch.unpack(saved[0]);
  sketch.node_end();
  // Stash 2 on one stream: the third pack waits for the first copy (100). The reload begins when the third
  // copy out is done (300) and takes 100. Nothing else runs, so compute stalls for all 400.
  EXPECT_EQ(metrics_of(sketch, trl(1, 2)).step_time_ns, 400);
  EXPECT_EQ(metrics_of(sketch, with_stash(2)).step_time_ns, 200);  // two streams: out 100, in 100
}

TEST(Replay, LatencyCountsForEachCopy) {
  const Link slow_to_start{{1e9, 40}, {1e9, 7}};
  EXPECT_EQ(metrics_of(timed(), offload(), slow_to_start).exposed_ns, 140 + 107);
}

TEST(Replay, RejectsALinkTooSlowForTheClocks) {
  ProgramSketch sketch;
  sketch.save(sketch.alloc(10 * kGiB));
  EXPECT_THROW(metrics_of(sketch, offload(), {{1, 0}, {1e9, 0}}), Error);
  EXPECT_GT(metrics_of(sketch, offload(), {{1000, 0}, {1e9, 0}}).step_time_ns, 0);
}

TEST(Replay, MemoryDoesNotDependOnTheLink) {
  const Link slow{{1e6, 1000}, {1e6, 1000}};
  Policy policy = with_stash(1);
  policy.prefetch_bytes = 100;
  EXPECT_EQ(metrics_of(two_layers(), policy, slow).device_peak_bytes,
            metrics_of(two_layers(), policy).device_peak_bytes);
}

}  // namespace
}  // namespace offprof

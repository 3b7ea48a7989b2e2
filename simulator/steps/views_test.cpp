#include "simulator/steps/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/replay/replay.h"
#include "tests/support/command_lists.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_program.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Bytes kMostBytes = 100;
constexpr Link kLink{{1e9, 5}, {0.7e9, 9}};

Policy with_stash(std::int64_t count) {
  Policy policy = preset_policy("offload");
  policy.stash_count = count;
  return policy;
}

Policy any_policy() {
  return *random_policy(*random_scheduler(), kMostBytes);
}

Bytes sum(const DeviceContent& content) {
  return content.resident + content.kept + content.stashed + content.reloaded + content.gathered +
         content.working;
}

// --- Ledger ---

TEST(ReplayLedger, ReportsPlaceAndReasonOfTheBytes) {
  ProgramSketch sketch;
  const std::int32_t x = sketch.alloc(100), small = sketch.alloc(10);
  sketch.save(x);
  sketch.save_part(x, 40);
  sketch.save(small);
  sketch.save(sketch.resident(30), 0, Movability::kParameter);
  Policy policy = preset_policy("offload");
  policy.threshold_bytes = 50;
  const Ledger ledger = replay_ledger(sketch.program(), Step(sketch.program()), policy);
  EXPECT_EQ(ledger, (Ledger{{{Place::kHost, PlacementReason::kOffloaded}, {1, 100}},
                            {{Place::kHost, PlacementReason::kSharedCopy}, {1, 40}},
                            {{Place::kDevice, PlacementReason::kBelowThreshold}, {1, 10}},
                            {{Place::kDevice, PlacementReason::kParameter}, {1, 30}}}));
}

RC_GTEST_PROP(ReplayLedgerProperty, SumsToAllSavedTensors, ()) {
  const StepProgram program = ChainSketch::program(*random_layers(kMostBytes));
  LedgerEntry total;
  for (const auto& [place, entry] : replay_ledger(program, Step(program), any_policy())) {
    total.tensors += entry.tensors;
    total.bytes += entry.bytes;
  }
  LedgerEntry saved;
  for (const SavedTensor& tensor : program.saved) {
    ++saved.tensors;
    saved.bytes += tensor.bytes;
  }
  RC_ASSERT(total == saved);
}

// --- Commands ---

TEST(ReplayCommands, AreThoseOfTheScheduler) {
  ProgramSketch sketch;
  sketch.node(sketch.save(sketch.alloc(100)));
  const std::vector<Command> commands = replay_commands(Step(sketch.program()), preset_policy("offload"));
  EXPECT_THAT(names_of(commands),
              ElementsAre("copy_out", "wait_out", "drop", "copy_in", "wait_in", "drop", "free_host"));
}

// --- Memory over the step ---

TEST(MemoryOverStep, HasAPointWhereverMemoryChanges) {
  ProgramSketch sketch(1000);
  sketch.compute(5);
  const std::int32_t x = sketch.alloc(100);
  sketch.compute(20);
  sketch.save(x);
  sketch.compute(300);
  sketch.free(x);
  std::vector<std::string> points;
  for (const MemoryPoint& point : memory_over_step(Step(sketch.program()), with_stash(1), kLink))
    points.push_back(std::to_string(point.at_ns) + ": " + std::to_string(point.device_bytes) + ", " +
                     std::to_string(point.host_bytes));
  EXPECT_THAT(points,
              ElementsAre("0: 1000, 0", "5: 1100, 0", "25: 1100, 100"));  // the stash holds it after the free
}

RC_GTEST_PROP(MemoryOverStepProperty, ReachesThePeaks, ()) {
  const Step step(ChainSketch::program(*random_layers(kMostBytes)));
  const Policy policy = any_policy();
  const Metrics metrics = replay(step, policy, kLink).metrics;
  Bytes device = 0, host = 0;
  Nanoseconds last = 0;
  for (const MemoryPoint& point : memory_over_step(step, policy, kLink)) {
    device = std::max(device, point.device_bytes);
    host = std::max(host, point.host_bytes);
    RC_ASSERT(point.at_ns >= last);
    last = point.at_ns;
  }
  RC_ASSERT(device == *metrics.device_peak_bytes);
  RC_ASSERT(host == *metrics.host_peak_bytes);
}

// --- Contents at the peak ---

/// x is kept or stashed, and y is reloaded, while a gradient is live.
ProgramSketch peak_in_backward() {
  ProgramSketch sketch(1000);
  const std::int32_t y = sketch.alloc(200);
  const SavedId b = sketch.save(y);
  sketch.free(y);
  const std::int32_t x = sketch.alloc(100);
  sketch.save(x);
  sketch.free(x);
  sketch.alloc(50);
  sketch.node(b);
  return sketch;
}

TEST(ContentAtPeak, ReportsKeptBytes) {
  const ProgramSketch sketch = peak_in_backward();
  const DeviceContent content = content_at_peak(Step(sketch.program()), preset_policy("keep"), kAnyLink);
  EXPECT_EQ(content.total, 1350);
  EXPECT_EQ(content.resident, 1000);
  EXPECT_EQ(content.kept, 300);
  EXPECT_EQ(content.working, 50);
}

TEST(ContentAtPeak, ReportsStashedAndReloadedBytes) {
  const ProgramSketch sketch = peak_in_backward();
  const DeviceContent content = content_at_peak(Step(sketch.program()), with_stash(1), kAnyLink);
  EXPECT_EQ(content.total, 1350);
  EXPECT_EQ(content.stashed, 100);
  EXPECT_EQ(content.reloaded, 200);
  EXPECT_EQ(content.working, 50);
}

TEST(ContentAtPeak, CountsAStorageOnce) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  sketch.save(x);
  sketch.save(x);
  sketch.alloc(1);
  const DeviceContent content = content_at_peak(Step(sketch.program()), preset_policy("keep"), kAnyLink);
  EXPECT_EQ(content.kept, 100);
  EXPECT_EQ(content.working, 1);
}

TEST(ContentAtPeak, ReportsTheGatheredParametersThatAreThere) {
  ProgramSketch sketch(1000);
  sketch.free(sketch.alloc(30, StorageRole::kGathered));
  const std::int32_t used = sketch.alloc(70, StorageRole::kGathered);
  sketch.save(sketch.alloc(400));
  sketch.alloc(1);
  sketch.free(used);
  sketch.free(sketch.alloc(5, StorageRole::kGathered));
  const DeviceContent content = content_at_peak(Step(sketch.program()), preset_policy("keep"), kAnyLink);
  EXPECT_EQ(content.total, 1471);
  EXPECT_EQ(content.resident, 1000);
  EXPECT_EQ(content.kept, 400);
  EXPECT_EQ(content.gathered, 70);
  EXPECT_EQ(content.working, 1);
}

TEST(ContentAtPeak, ReportsLoadedParameters) {
  ProgramSketch sketch(1000);
  const std::int32_t loaded = sketch.alloc(70);
  sketch.fetch(loaded);
  sketch.fetched(loaded);
  sketch.alloc(1);
  const DeviceContent content = content_at_peak(Step(sketch.program()), preset_policy("keep"), kAnyLink);
  EXPECT_EQ(content.gathered, 70);
  EXPECT_EQ(content.working, 1);
}

TEST(ContentAtPeak, ASavedResidentIsResident) {
  ProgramSketch sketch(1000);
  sketch.save(sketch.resident(300), 0, Movability::kParameter);
  sketch.alloc(1);
  const DeviceContent content = content_at_peak(Step(sketch.program()), preset_policy("keep"), kAnyLink);
  EXPECT_EQ(content.resident, 1000);
  EXPECT_EQ(content.kept, 0);
}

TEST(ContentAtPeak, AFreedResidentDoesNotCount) {
  ProgramSketch sketch(1000);
  sketch.free(sketch.resident(300));
  sketch.save(sketch.alloc(400));
  sketch.alloc(1);
  const DeviceContent content = content_at_peak(Step(sketch.program()), preset_policy("keep"), kAnyLink);
  EXPECT_EQ(content.total, 1101);
  EXPECT_EQ(content.resident, 700);
  EXPECT_EQ(content.kept, 400);
  EXPECT_EQ(content.working, 1);
}

TEST(ContentAtPeak, IsOnlyResidentForAStepThatAllocatesNothing) {
  const ProgramSketch sketch(1000);
  const DeviceContent content = content_at_peak(Step(sketch.program()), preset_policy("keep"), kAnyLink);
  EXPECT_EQ(content.total, 1000);
  EXPECT_EQ(content.resident, 1000);
  EXPECT_EQ(content.working, 0);
}

RC_GTEST_PROP(ContentAtPeakProperty, PartsSumToThePeak, ()) {
  const Step step(ChainSketch::program(*random_layers(kMostBytes)));
  const Policy policy = any_policy();
  const DeviceContent content = content_at_peak(step, policy, kAnyLink);
  RC_ASSERT(content.total == *replay(step, policy, kLink).metrics.device_peak_bytes);
  RC_ASSERT(sum(content) == content.total);
  for (const Bytes part :
       {content.resident, content.kept, content.stashed, content.reloaded, content.gathered, content.working})
    RC_ASSERT(part >= 0);
}

// --- Place of an event ---

TEST(PlaceOfEvent, ReturnsThePhaseAndTheOperator) {
  ProgramSketch sketch;
  sketch.phase("forward");
  sketch.op_begin("aten::relu");
  sketch.alloc(8);  // event 0
  sketch.op_end("aten::relu");
  sketch.free(0);  // event 1
  sketch.phase("backward");
  sketch.alloc(8);  // event 2
  const Step step(sketch.program());
  const auto place = [&](std::size_t index) {
    const ProgramPlace at = place_of_event(sketch.program(), step, index);
    return at.phase + "/" + at.op;
  };
  EXPECT_EQ(place(0), "forward/aten::relu");
  EXPECT_EQ(place(1), "forward/");
  EXPECT_EQ(place(2), "backward/");
}

TEST(PlaceOfEvent, IsEmptyForAStepWithoutEvents) {
  ProgramSketch sketch(1000);
  sketch.phase("forward");
  const Step step(sketch.program());
  const Prediction prediction = replay(step, preset_policy("keep"), kLink);
  EXPECT_EQ(prediction.metrics.device_peak_bytes, 1000);
  EXPECT_EQ(place_of_event(sketch.program(), step, prediction.peak_event).phase, "");
  EXPECT_EQ(content_at_peak(step, preset_policy("keep"), kAnyLink).total, 1000);
}

// --- Stalls ---

TEST(Stalls, AreLongestFirstWithTheirReasons) {
  ProgramSketch sketch;
  const SavedId small = sketch.save(sketch.alloc(10)), large = sketch.save(sketch.alloc(100));
  sketch.unpack(large);
  sketch.unpack(small);
  sketch.node_end();
  const std::vector<Stall> list =
      stalls(Step(sketch.program()), preset_policy("offload"), {{1e9, 0}, {0.5e9, 0}});
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0].duration_ns, 200);
  EXPECT_EQ(list[0].tensor, large);
  EXPECT_EQ(list[0].reason, StallReason::kReloadLate);
  EXPECT_EQ(list[1].duration_ns, 100);
  EXPECT_EQ(list[1].reason, StallReason::kNoStash);
  EXPECT_EQ(list[2].duration_ns, 20);
  EXPECT_EQ(list[3].duration_ns, 10);
}

TEST(Stalls, AreEmptyWithoutCopies) {
  const StepProgram program = ChainSketch::program(3, 100);
  EXPECT_THAT(stalls(Step(program), preset_policy("keep"), kLink), IsEmpty());
}

RC_GTEST_PROP(StallsProperty, SumToTheStallTime, ()) {
  const Step step(ChainSketch::program(*random_layers(kMostBytes)));
  const Policy policy = any_policy();
  Nanoseconds total = 0;
  for (const Stall& stall : stalls(step, policy, kLink)) {
    RC_ASSERT(stall.duration_ns > 0);
    total += stall.duration_ns;
  }
  RC_ASSERT(total == *replay(step, policy, kLink).metrics.exposed_ns);
}

}  // namespace
}  // namespace offprof

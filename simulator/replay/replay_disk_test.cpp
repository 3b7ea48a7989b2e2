#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/steps/views.h"
#include "tests/support/sample_program.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::ElementsAre;

/// A byte takes one nanosecond over the link, two to write, and three to read.
constexpr Link kLink{{1e9, 0}, {1e9, 0}, 0, false, {{0.5e9, 0}, {1e9 / 3, 0}}};

/// Saves `count` tensors of 100 bytes and frees them. Backward unpacks them 1000 ns later.
StepProgram layers(int count) {
  ProgramSketch sketch;
  std::vector<SavedId> saved;
  for (int i = 0; i < count; ++i) {
    const std::int32_t storage = sketch.alloc(100);
    saved.push_back(sketch.save(storage));
    sketch.free(storage);
  }
  sketch.compute(1000);
  while (!saved.empty()) {
    sketch.node(saved.back());
    saved.pop_back();
  }
  sketch.backward_end();
  return sketch.program();
}

Policy to_disk(Bytes buffer) {
  Policy policy = preset_policy("keep");
  policy.disk_buffer_bytes = buffer;
  policy.rules.emplace_back().placement.place = Place::kDisk;
  return policy;
}

class DiskListener final : public ReplayListener {
 public:
  void on_disk_transfer(const CopyCommand& command, const VirtualClock::Copy& transfer) override {
    transfers.push_back(std::string(transfer.track == Track::kDiskWrite ? "write " : "read ") +
                        std::to_string(command.copy) + ": " + std::to_string(transfer.begin) + "-" +
                        std::to_string(transfer.end));
  }
  void on_stall(const Stall& stall) override {
    stalls.push_back(std::string(to_string(stall.reason)) + " " + std::to_string(stall.tensor) + ": " +
                     std::to_string(stall.begin_ns) + "+" + std::to_string(stall.duration_ns));
  }
  std::vector<std::string> transfers, stalls;
};

DiskListener heard(const StepProgram& program, const Policy& policy) {
  DiskListener listener;
  replay(Step(program), policy, kLink, &listener);
  return listener;
}

TEST(ReplayDisk, CountsBytesOnTheDiskAndInTheBuffer) {
  const Metrics metrics = replay(Step(layers(5)), to_disk(200), kLink).metrics;
  EXPECT_EQ(metrics.disk_peak_bytes, 500);
  EXPECT_EQ(metrics.disk_write_bytes, 500);
  EXPECT_EQ(metrics.disk_read_bytes, 300);  // two were still in the buffer
  EXPECT_EQ(metrics.host_peak_bytes, 200);
}

TEST(ReplayDisk, HasNoFiguresWithoutADisk) {
  const Metrics metrics = replay(Step(layers(2)), preset_policy("offload"), kLink).metrics;
  EXPECT_FALSE(metrics.disk_peak_bytes || metrics.disk_write_bytes || metrics.disk_read_bytes);
}

TEST(ReplayDisk, AWriteBeginsAfterItsCopyOutAndTheWritesBeforeIt) {
  EXPECT_THAT(heard(layers(2), to_disk(1000)).transfers, ElementsAre("write 0: 100-300", "write 1: 300-500"));
}

TEST(ReplayDisk, ComputeWaitsForAWriteWhoseMemoryIsNeeded) {
  EXPECT_THAT(heard(layers(2), to_disk(100)).stalls, Contains("disk 0: 100+200"));
}

TEST(ReplayDisk, BackwardWaitsForAReadThatHasNotEnded) {
  const DiskListener listener = heard(layers(2), to_disk(100));
  EXPECT_THAT(listener.transfers, Contains(testing::StartsWith("read 0")));
  EXPECT_THAT(listener.stalls, Contains(testing::StartsWith("disk 0")));
}

TEST(ReplayDisk, StallsAddUpToTheStallTime) {
  const StepProgram program = layers(4);
  const Metrics metrics = replay(Step(program), to_disk(100), kLink).metrics;
  Nanoseconds sum = 0;
  for (const Stall& stall : stalls(Step(program), to_disk(100), kLink)) sum += stall.duration_ns;
  EXPECT_EQ(sum, metrics.exposed_ns);
}

TEST(ReplayDisk, AnUnknownDiskTakesNoTime) {
  Link link = kLink;
  link.disk = {};
  const Step step(layers(3));
  Policy host = to_disk(0);
  host.rules.front().placement.place = Place::kHost;
  EXPECT_EQ(replay(step, to_disk(0), link).metrics.step_time_ns,
            replay(step, host, link).metrics.step_time_ns);
}

TEST(ReplayDisk, TheTimelineHasARowForEachDirection) {
  const StepProgram program = layers(3);
  const Timeline timeline = replay_timeline(program, Step(program), to_disk(100), kLink);
  int writes = 0, reads = 0;
  for (const Span& span : timeline.spans) {
    writes += span.track == Track::kDiskWrite;
    reads += span.track == Track::kDiskRead;
  }
  EXPECT_EQ(writes, 3);
  EXPECT_EQ(reads, 2);
}

TEST(ReplayDisk, RejectsAnEndlesslySlowDisk) {
  Link link = kLink;
  link.disk.read.bytes_per_second = 1e-12;
  EXPECT_THROW(replay(Step(layers(2)), to_disk(100), link), Error);
}

}  // namespace
}  // namespace offprof

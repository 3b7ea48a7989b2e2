#include "simulator/tuner/plans/least_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "simulator/replay/replay.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

LeastMemory least_of(const Step& step) {
  return least_memory_of(step, movable_versions(step));
}

TEST(LeastMemory, IsTheMemoryOfTheProgramAndItsNodes) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  const std::int32_t buffer = sketch.alloc(30);
  const SavedId stays = sketch.save(buffer, 0, Movability::kBuffer);
  sketch.free(x);
  sketch.free(buffer);
  const std::int32_t gradient = sketch.alloc(7);  // beside it the unmovable tensor, then x for its node
  sketch.node(a);
  sketch.node(stays);
  sketch.free(gradient);
  EXPECT_EQ(least_of(Step(sketch.program())).peak, 1000 + 7 + 30 + 100);
}

TEST(LeastMemory, CountsATensorUnpackedTwiceOnce) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  sketch.escapes(a);
  sketch.free(x);
  sketch.unpack(a);
  sketch.unpack(a);
  sketch.node_end();
  sketch.release(a);
  sketch.free_unpacked(a);
  sketch.free(sketch.alloc(50));
  EXPECT_EQ(least_of(Step(sketch.program())).peak, 1100);
}

TEST(LeastMemory, AnUnpackedTensorStaysUntilItsRelease) {
  ProgramSketch sketch;
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  sketch.free(x);
  sketch.unpack(a);
  sketch.node_end();
  const std::int32_t other = sketch.alloc(10);
  sketch.release(a);
  sketch.free(other);
  EXPECT_EQ(least_of(Step(sketch.program())).peak, 110);
}

TEST(LeastMemory, AGapGoesFromTheProgramsFreeToTheUnpack) {
  ProgramSketch sketch;
  const std::int32_t x = sketch.alloc(100);  // event 0
  const SavedId a = sketch.save(x);          // 1
  sketch.free(x);                            // 2
  sketch.free(sketch.alloc(10));             // 3, 4
  sketch.node(a);                            // 5, 6, 7
  const LeastMemory least = least_of(Step(sketch.program()));
  ASSERT_EQ(least.gaps.size(), 1U);
  EXPECT_EQ(least.gaps[0].version, 0U);
  EXPECT_EQ(least.gaps[0].begin, 2U);
  EXPECT_EQ(least.gaps[0].end, 5U);
  EXPECT_EQ(least.after_event[1], 100);
  EXPECT_EQ(least.after_event[2], 0);
  EXPECT_EQ(least.after_event[5], 100);
}

/// Records live bytes after each event.
class LiveListener final : public ReplayListener {
 public:
  void on_memory(Bytes device_bytes, Bytes, Nanoseconds) override { now_ = device_bytes; }
  void on_event(std::size_t, Nanoseconds) override { live.push_back(now_); }
  std::vector<Bytes> live;

 private:
  Bytes now_ = 0;
};

RC_GTEST_PROP(LeastMemoryProperty, NoPolicyHoldsLessAfterAnyEvent, ()) {
  constexpr Bytes kMostBytes = 50;
  StepProgram program = random_chain(15, kMostBytes);
  add_free_points(program);
  if (*rc::gen::arbitrary<bool>()) carry_tensors(program, kMostBytes);
  const Step step(program);
  const LeastMemory least = least_of(step);
  LiveListener listener;
  replay(step, *random_policy(SchedulerKind::kOffload, kMostBytes), kAnyLink, &listener);
  RC_ASSERT(listener.live.size() == least.after_event.size());
  for (std::size_t e = 0; e < listener.live.size(); ++e) RC_ASSERT(listener.live[e] >= least.after_event[e]);
}

RC_GTEST_PROP(LeastMemoryProperty, WithItsGapsEqualsTheMemoryOfKeep, ()) {
  const Step step(random_chain(15, 50));
  const auto versions = movable_versions(step);
  const LeastMemory least = least_memory_of(step, versions);
  LiveListener listener;
  replay(step, preset_policy("keep"), kAnyLink, &listener);
  std::vector<Bytes> held = least.after_event;
  for (const LeastMemory::Gap& gap : least.gaps)
    for (std::size_t e = gap.begin; e < gap.end; ++e) held[e] += versions[gap.version].bytes;
  RC_ASSERT(held == listener.live);
}

}  // namespace
}  // namespace offprof

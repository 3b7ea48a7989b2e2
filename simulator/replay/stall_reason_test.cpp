#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/steps/views.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

using testing::ElementsAre;

/// A byte takes one nanosecond in either direction.
constexpr Link kLink{{1e9, 0}, {1e9, 0}};

class StallListener final : public ReplayListener {
 public:
  void on_stall(const Stall& stall) override {
    texts.push_back(std::string(to_string(stall.reason)) + " " + std::to_string(stall.tensor) + ": " +
                    std::to_string(stall.begin_ns) + "+" + std::to_string(stall.duration_ns));
    tracks.push_back(stall.copy_track);
  }
  std::vector<std::string> texts;
  std::vector<std::optional<Track>> tracks;
};

/// Returns the stalls in program order: the reason, the tensor, when and for how long.
std::vector<std::string> stalls_of(const ProgramSketch& sketch, const Policy& policy) {
  StallListener listener;
  replay(Step(sketch.program()), policy, kLink, &listener);
  return listener.texts;
}

Policy with_stash(std::int64_t count) {
  Policy policy = preset_policy("offload");
  policy.stash_count = count;
  return policy;
}

Policy trl(std::int64_t stash) {
  Policy policy = preset_policy("trl");
  policy.threshold_bytes = 1;
  policy.stash_count = stash;
  return policy;
}

/// Saves tensors of 100 bytes, 30 ns apart.
ProgramSketch saved(int count) {
  ProgramSketch sketch;
  for (int i = 0; i < count; ++i) {
    sketch.save(sketch.alloc(100));
    sketch.compute(30);
  }
  return sketch;
}

TEST(StallReason, IsNoStashWithoutAStash) {
  EXPECT_THAT(stalls_of(saved(2), preset_policy("offload")),
              ElementsAre("no_stash 0: 0+100", "no_stash 1: 130+100"));
}

TEST(StallReason, IsNoStashIfTheTensorIsTooLargeForIt) {
  Policy policy = preset_policy("offload");
  policy.stash_bytes = 99;
  EXPECT_THAT(stalls_of(saved(1), policy), ElementsAre("no_stash 0: 0+100"));
}

TEST(StallReason, IsStashFullForAStashOfOneTensor) {
  EXPECT_THAT(stalls_of(saved(2), with_stash(1)), ElementsAre("stash_full 0: 30+70"));
}

TEST(StallReason, IsStashFullForAStashWithBytesForOneTensor) {
  Policy policy = preset_policy("offload");
  policy.stash_bytes = 100;
  EXPECT_THAT(stalls_of(saved(2), policy), ElementsAre("stash_full 0: 30+70"));
}

TEST(StallReason, IsStashFullForTrlsStashOfOneTensor) {
  EXPECT_THAT(stalls_of(saved(2), trl(1)), ElementsAre("stash_full 0: 30+70"));
}

TEST(StallReason, IsStashEmptiedAtTheEndOfTrlsFirstNode) {
  ProgramSketch sketch = saved(2);
  sketch.unpack(1);
  sketch.node_end();
  EXPECT_THAT(stalls_of(sketch, trl(5)), ElementsAre("stash_emptied 0: 60+40", "stash_emptied 1: 100+100"));
}

TEST(StallReason, IsReleasedIfTheReleaseComesBeforeTheCopyIsDone) {
  ProgramSketch sketch = saved(1);
  sketch.release(0);
  EXPECT_THAT(stalls_of(sketch, with_stash(1)), ElementsAre("released 0: 30+70"));
}

TEST(StallReason, IsReloadLateIfBackwardNeedsTheTensorFirst) {
  ProgramSketch sketch = saved(1);
  sketch.unpack(0);
  EXPECT_THAT(stalls_of(sketch, preset_policy("offload")),
              ElementsAre("no_stash 0: 0+100", "reload_late 0: 130+100"));
}

TEST(StallReason, IsLinkUntilTheTransferBegins) {
  ProgramSketch sketch = saved(2);
  sketch.release(1);
  EXPECT_THAT(stalls_of(sketch, with_stash(2)), ElementsAre("link 1: 60+40", "released 1: 100+100"));
}

TEST(StallReason, IsLaunchIfTheHostIsBehind) {
  ProgramSketch sketch = saved(1);
  StepProgram program = sketch.program();
  program.work.resize(program.events.size());
  program.work.back() = {50, 10, 60, Work::kNoWait, 10};
  StallListener listener;
  replay(Step(program), preset_policy("keep"), kLink, &listener);
  EXPECT_THAT(listener.texts, ElementsAre("launch -1: 10+50"));
  EXPECT_THAT(listener.tracks, ElementsAre(std::nullopt));
}

TEST(Stall, ReportsTheDirectionOfItsCopyForEachPart) {
  ProgramSketch sketch = saved(2);
  sketch.unpack(1);
  sketch.node_end();
  StallListener listener;
  replay(Step(sketch.program()), preset_policy("offload"), {{1e9, 0}, {1e9, 0, 5}}, &listener);
  EXPECT_THAT(listener.texts, ElementsAre("no_stash 0: 0+100", "no_stash 1: 130+100", "link 1: 260+5",
                                          "reload_late 1: 265+100"));
  EXPECT_THAT(listener.tracks, ElementsAre(Track::kD2h, Track::kD2h, Track::kH2d, Track::kH2d));
}

TEST(StallReason, IsParametersIfAnOperatorWaitsForThem) {
  ProgramSketch sketch;
  const std::int32_t weight = sketch.alloc(100);
  sketch.fetch(weight);
  sketch.compute(30);
  sketch.fetched(weight);
  sketch.save_parameters(weight);
  EXPECT_THAT(stalls_of(sketch, preset_policy("keep")),
              ElementsAre("parameters -1: 30+70", "parameters -1: 100+100"));
}

TEST(StallReason, IsLinkIfParametersWaitBehindASavedTensor) {
  ProgramSketch sketch;
  sketch.save(sketch.alloc(100));
  const std::int32_t weight = sketch.alloc(50);
  sketch.save_parameters(weight);
  EXPECT_THAT(stalls_of(sketch, with_stash(1)), ElementsAre("link -1: 0+100", "parameters -1: 100+50"));
}

}  // namespace
}  // namespace offprof

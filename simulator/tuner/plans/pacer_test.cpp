#include "simulator/tuner/plans/pacer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "simulator/replay/replay.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

constexpr int kLayers = 40;
/// Over this link a copy of 100 bytes takes as long as two layers of forward.
constexpr double kHalf = 1e9;

/// A step of layers whose outputs are saved every 50 ns.
struct Sample {
  explicit Sample(double bytes_per_second, Bytes odd = 100)
      : program(ChainSketch::program(layers(odd))),
        step(program),
        link{{bytes_per_second, 0}, {bytes_per_second, 0}} {
    space.versions = movable_versions(step);
    space.least = least_memory_of(step, space.versions);
  }

  /// `odd`: bytes of every other layer.
  static std::vector<LayerSketch> layers(Bytes odd) {
    std::vector<LayerSketch> layers(kLayers, {.bytes = 100, .forward_ns = 50, .backward_ns = 100});
    for (std::size_t i = 1; i < layers.size(); i += 2) layers[i].bytes = odd;
    return layers;
  }

  Pacer pacer() const { return {step, link, space}; }

  Metrics replayed(const PlanSearch::Plan& plan) const {
    Policy policy = with_setting({}, plan.setting);
    policy.tensors.emplace();
    for (std::size_t v = 0; v < plan.moved.size(); ++v)
      if (plan.moved[v] != 0) policy.tensors->push_back(space.versions[v].tensors.front());
    return replay(step, policy, link).metrics;
  }

  StepProgram program;
  Step step;
  Link link;
  PlanSpace space;
};

std::ptrdiff_t moved_by(const PlanSearch::Plan& plan) {
  return std::ranges::count(plan.moved, 1);
}

TEST(Pacer, AtTheLinksOwnSpeedEveryOtherTensorMovesAndComputeDoesNotWait) {
  const Sample sample(kHalf);
  const PlanSearch::Plan plan = sample.pacer().plan({0, 1, 0, 800});
  EXPECT_NEAR(static_cast<double>(moved_by(plan)), kLayers / 2, 2);
  EXPECT_EQ(sample.replayed(plan).step_time_ns,
            replay(sample.step, preset_policy("keep"), sample.link).metrics.step_time_ns);
}

TEST(Pacer, AFasterPaceMovesMoreAndComputeWaits) {
  const Sample sample(kHalf);
  const PlanSearch::Plan plan = sample.pacer().plan({0, 4, 0, 800});
  EXPECT_GE(moved_by(plan), kLayers - 4);
  EXPECT_GT(sample.replayed(plan).step_time_ns,
            replay(sample.step, preset_policy("keep"), sample.link).metrics.step_time_ns);
}

TEST(Pacer, ASlowerPaceMovesLess) {
  const Sample sample(kHalf);
  EXPECT_LE(moved_by(sample.pacer().plan({0, 0.25, 0, 800})), kLayers / 8 + 1);
}

TEST(Pacer, ATensorThatWouldBeBackBeforeItIsGoneStays) {
  EXPECT_EQ(Sample(kHalf).pacer().plan({0, 1, 0, 800}).moved.back(), 0);
}

/// Returns the number of moved versions of that size.
std::ptrdiff_t moved_of_size(const Sample& sample, const PlanSearch::Plan& plan, Bytes size) {
  std::ptrdiff_t count = 0;
  for (std::size_t v = 0; v < plan.moved.size(); ++v)
    if (plan.moved[v] != 0 && sample.space.versions[v].bytes == size) ++count;
  return count;
}

TEST(Pacer, ASelectionMovesOneSizeAlone) {
  const Sample sample(kHalf, 60);
  const PlanSearch::Plan plan = sample.pacer().plan({2, 8, 0, 800});
  EXPECT_GE(moved_of_size(sample, plan, 60), kLayers / 2 - 2);
  EXPECT_EQ(moved_of_size(sample, plan, 100), 0);
}

TEST(Pacer, EachSizeHasASelection) {
  const Sample sample(kHalf, 60);
  std::size_t most = 0;
  for (const Pace& pace : sample.pacer().grid()) most = std::max(most, pace.selection);
  EXPECT_EQ(most, 2U);
}

TEST(Pacer, TheGridGoesFromFewTensorsToAlmostAll) {
  const Sample sample(kHalf);
  std::vector<std::ptrdiff_t> counts;
  for (const Pace& pace : sample.pacer().grid()) {
    EXPECT_EQ(pace.selection, 0U);  // all have one size
    counts.push_back(moved_by(sample.pacer().plan(pace)));
  }
  EXPECT_LE(*std::ranges::min_element(counts), kLayers / 8);
  EXPECT_GE(*std::ranges::max_element(counts), kLayers - 4);
}

TEST(Pacer, NeighboursDifferInOneSetting) {
  const Pace pace{0, 1, 200, 300};
  for (const Pace& near : Sample(kHalf).pacer().neighbours(pace))
    EXPECT_EQ((near.speed != pace.speed) + (near.backlog != pace.backlog) + (near.window != pace.window), 1);
}

}  // namespace
}  // namespace offprof

#include "simulator/tuner/placement_search.h"

#include <gmock/gmock.h>

#include <array>

#include "simulator/replay/replay.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

constexpr Link kLink = {{1e9, 0}, {1e9, 0}};

/// Profile for storages of 100 floats. Encoding leaves a quarter of the bytes, and takes `compute_ns`, as
/// does decoding.
TransformProfile profile(const std::string& name, bool is_lossless, Nanoseconds compute_ns) {
  TransformCost cost;
  cost.dtype = "float32";
  cost.elements = 100;
  cost.encoded_bytes = 100;
  cost.encode = {{{100, -1}}, compute_ns};
  cost.decode = {{{400, -1}}, compute_ns};
  return {name, is_lossless, {cost}};
}

/// Three layers, each of which saves 100 floats under its own operator and computes for a microsecond.
StepProgram three_layers() {
  ProgramSketch sketch(1000);
  std::vector<SavedId> saved;
  for (int i = 0; i < 3; ++i) {
    const std::int32_t x = sketch.alloc(400);
    sketch.compute(1000);
    saved.push_back(sketch.save(x));
    sketch.free(x);
  }
  for (std::size_t i = saved.size(); i-- > 0;) sketch.node(saved[i]);
  sketch.backward_end();
  StepProgram program = sketch.program();
  for (std::size_t i = 0; i < program.saved.size(); ++i) {
    program.saved[i].layout = TensorLayout{"float32", {100}, {1}};
    program.names.push_back("op" + std::to_string(i));
    program.saved[i].op = static_cast<std::int32_t>(program.names.size() - 1);
  }
  return program;
}

/// Searches for the least peak within a step time.
PlacementSearchResult search(const StepProgram& program, const std::vector<TransformProfile>& profiles,
                             Nanoseconds most_time, std::size_t most_replays = 1000) {
  const Step step(program, {}, profiles);
  const auto key = [&](const Candidate& candidate) {
    const bool is_late = *candidate.predicted.step_time_ns > most_time;
    return std::tuple(is_late,
                      is_late ? *candidate.predicted.step_time_ns : *candidate.predicted.device_peak_bytes);
  };
  const PlacementJudge judge = {[&](const Policy& policy) {
                                  return Candidate{policy, replay(step, policy, kLink).metrics};
                                },
                                [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); }};
  constexpr std::array<Place, 2> kPlaces = {Place::kDevice, Place::kHost};
  return search_placements(program, profiles, kPlaces, preset_policy("keep"), judge, most_replays, 1);
}

TEST(PlacementSearch, ReportsTheCostOfEachPlacementAlone) {
  const PlacementSearchResult result = search(three_layers(), {profile("pack", false, 50)}, 1'000'000);
  ASSERT_EQ(result.alone.size(), 4U);
  EXPECT_EQ(to_string(result.alone[0].placement), "device");
  EXPECT_EQ(result.alone[0].candidate.predicted.device_peak_bytes, 1000 + 1200);
  EXPECT_EQ(to_string(result.alone[2].placement), "pack");
  EXPECT_EQ(result.alone[2].tensors, 3);
  EXPECT_EQ(result.alone[2].bytes, 1200);
  EXPECT_FALSE(result.alone[2].is_lossless);
  EXPECT_EQ(result.alone[2].candidate.predicted.step_time_ns, 3000 + 6 * 50);
  EXPECT_EQ(result.groups, 3U);
}

TEST(PlacementSearch, AcceptsTensorsOfLessThanAByteForEachElement) {
  StepProgram program = three_layers();
  for (SavedTensor& saved : program.saved) saved.layout = TensorLayout{"float32", {1000}, {1}};
  EXPECT_EQ(search(program, {profile("pack", false, 50)}, 1'000'000).groups, 3U);
}

TEST(PlacementSearch, IsNeverWorseThanAPlacementAlone) {
  for (const Nanoseconds most_time : {0, 3000, 3150, 3500, 5000, 100'000}) {
    const PlacementSearchResult result =
        search(three_layers(), {profile("fast", false, 50), profile("slow", true, 5000)}, most_time);
    for (const PlacementCost& cost : result.alone) {
      const Metrics &alone = cost.candidate.predicted, &best = result.best.predicted;
      if (*alone.step_time_ns > most_time) continue;
      EXPECT_LE(*best.step_time_ns, most_time);
      EXPECT_LE(*best.device_peak_bytes, *alone.device_peak_bytes) << to_string(cost.placement);
    }
  }
}

TEST(PlacementSearch, AssignsDifferentPlacementsIfOneForAllIsNotPossible) {
  // Encoding and decoding of all three take 300 ns; there is time for two of them only.
  const PlacementSearchResult result = search(three_layers(), {profile("pack", false, 50)}, 3000 + 200);
  EXPECT_EQ(result.best.policy.rules.size(), 2U);
  EXPECT_LE(*result.best.predicted.step_time_ns, 3200);
  EXPECT_LT(*result.best.predicted.device_peak_bytes, 1000 + 1200);
}

TEST(PlacementSearch, StopsAtTheLimitOfReplays) {
  EXPECT_LE(search(three_layers(), {profile("pack", false, 50)}, 3200, 4).replayed, 4U + 20U);
}

TEST(PlacementSearch, RulesNameTheirGroups) {
  const PlacementSearchResult result = search(three_layers(), {profile("pack", false, 0)}, 3000);
  const Policy& encoded = result.alone.at(2).candidate.policy;
  ASSERT_EQ(encoded.rules.size(), 3U);
  const PolicyRule& rule = encoded.rules.front();
  EXPECT_TRUE(rule.op->starts_with("op"));
  EXPECT_EQ(rule.dtype, "float32");
  EXPECT_EQ(rule.min_bytes, 400);
  EXPECT_EQ(rule.max_bytes, 400);
}

TEST(PlacementSearch, RecomputesTensorsWithRecomputeSteps) {
  StepProgram program = three_layers();
  program.recomputations = {{1, "aten::relu", {0}, {{{400, -1}}, 70}}};
  const PlacementSearchResult result = search(program, {}, 3100);
  ASSERT_EQ(result.alone.size(), 3U);
  EXPECT_EQ(to_string(result.alone[2].placement), "recompute");
  EXPECT_TRUE(result.alone[2].is_lossless);
  EXPECT_EQ(result.alone[2].tensors, 1);
  EXPECT_EQ(result.alone[2].candidate.predicted.step_time_ns, 3070);
  EXPECT_LE(*result.best.predicted.device_peak_bytes, 1000 + 800);
}

}  // namespace
}  // namespace offprof

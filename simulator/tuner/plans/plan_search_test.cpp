#include "simulator/tuner/plans/plan_search.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/tuner/plans/least_memory.h"
#include "simulator/tuner/plans/plan_bound.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

constexpr std::size_t kPlenty = 1'000'000;
constexpr Nanoseconds kVeryLong = 1'000'000;

/// A step to search, and the initial frontier of a search over it.
struct Searched {
  Searched(const StepProgram& program, const Link& over, const EngineCosts& costs = {})
      : step(program, costs), link(over), versions(movable_versions(step)) {
    for (const char* preset : {"keep", "offload"}) {
      const Policy policy = preset_policy(preset);
      frontier.add({policy, replay(step, policy, link).metrics});
    }
  }

  PlanSearch search(std::size_t exhaustive_versions, std::size_t replays = kPlenty, unsigned threads = 0) {
    return PlanSearch(step, link, versions, {}, frontier,
                      {.replays = replays, .exhaustive_versions = exhaustive_versions, .threads = threads});
  }
  std::vector<double> shares(const Aim& aim) const {
    const LeastMemory least = least_memory_of(step, versions);
    const PlanRelaxation relaxation(step, link, versions, least, std::nullopt);
    if (aim.most_peak) return relaxation.least_time(*aim.most_peak, kVeryLong).moved;
    return relaxation.least_peak(*aim.most_time, *frontier.candidates().back().predicted.device_peak_bytes)
        .moved;
  }

  Step step;
  Link link;
  std::vector<MovableVersion> versions;
  Frontier frontier;
};

/// Returns a step program with a large tensor that is saved last and unpacked first, and small ones before
/// it. A threshold moves the large one first, although there is no time to reload it.
StepProgram large_last() {
  std::vector<LayerSketch> layers(6, {.bytes = 100, .forward_ns = 100, .backward_ns = 200});
  layers.back().bytes = 150;
  return ChainSketch::program(layers);
}

TEST(PlanSearch, FindsAPlanThatNoThresholdExpresses) {
  Searched searched(large_last(), {{1e9, 0}, {1e9, 0}});
  const Nanoseconds keep = *searched.frontier.candidates().back().predicted.step_time_ns;
  PlanSearch search = searched.search(14);
  const Aim aim{{}, keep};
  search.run(aim, searched.shares(aim));
  const Candidate& best = searched.frontier.best(aim);
  EXPECT_TRUE(search.is_exhaustive());
  EXPECT_TRUE(best.policy.tensors);
  EXPECT_EQ(best.predicted, replay(searched.step, best.policy, searched.link).metrics);
}

TEST(PlanSearch, StaysWithinItsLimitOfReplays) {
  Searched searched(ChainSketch::program(40, 100), {{1e9, 0}, {1e9, 0}});
  PlanSearch search = searched.search(0, 100);
  const Aim aim{2500, {}};
  search.run(aim, searched.shares(aim));
  EXPECT_LE(search.replays(), 100U);
  EXPECT_FALSE(search.is_exhaustive());
}

TEST(PlanSearch, DoesNotDependOnTheNumberOfThreads) {
  const auto found = [](unsigned threads) {
    Searched searched(ChainSketch::program(30, 100), {{1e9, 0}, {6e8, 0}});
    const Aim aim{2000, {}};
    searched.search(0, 2000, threads).run(aim, searched.shares(aim));
    return searched.frontier.best(aim).policy;
  };
  EXPECT_EQ(found(1), found(4));
}

/// Returns a step program with twelve tensors of twelve sizes.
StepProgram twelve_sizes() {
  std::vector<LayerSketch> layers;
  for (int i = 0; i < 12; ++i)
    layers.push_back({.bytes = 100 + 17 * ((5 * i) % 12), .forward_ns = 60, .backward_ns = 120});
  return ChainSketch::program(layers);
}

TEST(PlanSearch, SearchesLocallyIfAllPlansAreTooMany) {
  const Link link{{1e9, 10}, {1e9, 10}};
  const Aim aim{2000, {}};
  Searched local(twelve_sizes(), link), cut_short(twelve_sizes(), link), whole(twelve_sizes(), link);
  local.search(0).run(aim, local.shares(aim));
  PlanSearch search = cut_short.search(14, 3000);
  search.run(aim, cut_short.shares(aim));
  whole.search(14).run(aim, whole.shares(aim));
  const auto time = [&](const Searched& searched) {
    return *searched.frontier.best(aim).predicted.step_time_ns;
  };
  EXPECT_FALSE(search.is_exhaustive());
  EXPECT_LE(time(cut_short), time(local));
  EXPECT_LE(static_cast<double>(time(cut_short)), 1.01 * static_cast<double>(time(whole)));
}

TEST(PlanSearch, DividesItsReplaysAmongItsRuns) {
  Searched searched(twelve_sizes(), {{1e9, 10}, {1e9, 10}});
  PlanSearch search(searched.step, searched.link, searched.versions, {}, searched.frontier,
                    {.replays = 900, .runs = 3});
  for (const Bytes peak : {2200, 2000, 1800}) search.run({peak, {}}, searched.shares({peak, {}}));
  EXPECT_LE(search.replays(), 900U);
  PlanSearch first(searched.step, searched.link, searched.versions, {}, searched.frontier,
                   {.replays = 900, .runs = 3});
  first.run({2000, {}}, searched.shares({2000, {}}));
  EXPECT_LE(first.replays(), 300U);
}

/// Returns the best candidate for the aim over every set of versions, every stash by count and every window.
Candidate best_of_all(const Searched& searched, const Aim& aim) {
  Frontier frontier = searched.frontier;
  const Bytes total = sum_of(sizes_of(searched.versions));
  for (std::size_t set = 0; set < (std::size_t{1} << searched.versions.size()); ++set) {
    Policy policy;
    policy.tensors.emplace();
    for (std::size_t v = 0; v < searched.versions.size(); ++v)
      for (const SavedId tensor : searched.versions[v].tensors)
        if ((set >> v) & 1U) policy.tensors->push_back(tensor);
    std::sort(policy.tensors->begin(), policy.tensors->end());
    for (std::int64_t stash = 0; stash <= static_cast<std::int64_t>(searched.versions.size()); ++stash) {
      for (Bytes window = 0; window <= total; ++window) {
        const Policy made = with_setting(policy, {StashUnit::kCopies, stash, window});
        frontier.add({made, replay(searched.step, made, searched.link).metrics});
      }
    }
  }
  return frontier.best(aim);
}

/// Returns an aim between the results of moving all tensors and of keeping all.
Aim random_aim(const Searched& searched) {
  const auto& candidates = searched.frontier.candidates();
  const Metrics& low = candidates.front().predicted;
  const Metrics& high = candidates.back().predicted;
  if (*rc::gen::arbitrary<bool>())
    return {*rc::gen::inRange(*low.device_peak_bytes, *high.device_peak_bytes + 1), {}};
  return {{}, *rc::gen::inRange(*high.step_time_ns, *low.step_time_ns + 1)};
}

std::int64_t value_of(const Candidate& candidate, const Aim& aim) {
  return aim.most_peak ? *candidate.predicted.step_time_ns : *candidate.predicted.device_peak_bytes;
}

RC_GTEST_PROP(PlanSearchProperty, ExhaustiveSearchFindsTheBest, ()) {
  const StepProgram program = random_chain_beside_copies(4, 6);
  Searched searched(program, random_link(), random_costs_but_waits(program));
  RC_PRE(searched.versions.size() <= 5);
  const Aim aim = random_aim(searched);
  const Candidate wanted = best_of_all(searched, aim);
  searched.search(14).run(aim, searched.shares(aim));
  RC_ASSERT(value_of(searched.frontier.best(aim), aim) <= value_of(wanted, aim));
}

/// A copy that is made earlier may slow down compute that it would not have met otherwise.
RC_GTEST_PROP(PlanSearchProperty, ExhaustiveSearchIsWithinOnePercentIfCopiesSlowComputeDown, ()) {
  const StepProgram program = random_chain_beside_copies(4, 6);
  EngineCosts costs = random_costs_with_slowdown(program);
  costs.event_ns = 0;
  costs.standstills.clear();
  Searched searched(program, random_link(), costs);
  RC_PRE(searched.versions.size() <= 5);
  const Aim aim = random_aim(searched);
  const Candidate wanted = best_of_all(searched, aim);
  searched.search(14).run(aim, searched.shares(aim));
  const std::int64_t best = value_of(wanted, aim);
  RC_ASSERT(value_of(searched.frontier.best(aim), aim) <= best + best / 100);
}

/// Returns layers with different saved tensors; the result is the same for the same seed.
StepProgram made_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned end) { return static_cast<std::int64_t>(random() % end); };
  std::vector<LayerSketch> layers(static_cast<std::size_t>(4 + below(5)));
  for (LayerSketch& layer : layers) {
    layer.bytes = 20 + 20 * below(6);
    layer.scratch_bytes = below(60);
    layer.saves_input = below(2) == 1;
    layer.forward_ns = 20 + below(100);
    layer.backward_ns = 40 + below(200);
  }
  return ChainSketch::program(layers);
}

TEST(PlanSearch, LocalSearchIsMostlyWithinOnePercentOfExhaustiveSearch) {
  constexpr unsigned kPrograms = 60, kMostBeyond = 3;
  unsigned beyond = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    const StepProgram program = made_program(seed);
    const Link link{{2e8 + 1e8 * (seed % 9), 5}, {2e8 + 1e8 * (seed % 7), 5}};
    Searched all(program, link), some(program, link);
    const auto& ends = all.frontier.candidates();
    const Bytes low = *ends.front().predicted.device_peak_bytes,
                high = *ends.back().predicted.device_peak_bytes;
    const Aim aim{low + (high - low) * (1 + seed % 4) / 5, {}};
    PlanSearch through_all = all.search(14);
    through_all.run(aim, all.shares(aim));
    ASSERT_TRUE(through_all.is_exhaustive());
    some.search(0).run(aim, some.shares(aim));
    const auto best = static_cast<double>(value_of(all.frontier.best(aim), aim));
    const auto found = static_cast<double>(value_of(some.frontier.best(aim), aim));
    beyond += found > 1.01 * best ? 1 : 0;
    EXPECT_LE(found, 1.05 * best) << "seed " << seed;
  }
  EXPECT_LE(beyond, kMostBeyond);
}

}  // namespace
}  // namespace offprof

// Measures the parts of the tuner: replays of many settings, the whole search, and plans for thousands of
// tensors.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "simulator/steps/trace_steps.h"
#include "simulator/tuner/settings/replay_tree.h"
#include "simulator/tuner/settings/setting_sweep.h"
#include "simulator/tuner/tune.h"
#include "tests/bench/transformer_program.h"

namespace offprof {
namespace {

/// 4 blocks are as many as the zoo's transformer has; 31 blocks give about 5000 events, as many as GPT-2 has;
/// 167 blocks give about 2000 storages that may move.
constexpr int kDemoBlocks = 4, kBlocks = 31, kManyBlocks = 167;
const Link kPcie{{25e9, 10'000}, {25e9, 10'000}};

Trace made_trace(int blocks) {
  Trace trace;
  trace.environment.link = kPcie;
  trace.program = TransformerProgram::make(blocks);
  return trace;
}

/// The replays of a search: each forked off another one where their settings first differ, or each on its
/// own.
enum class Replays { kShared, kApart };

void count(benchmark::State& state, const ReplayEffort& effort) {
  state.counters["events"] = static_cast<double>(effort.events);
  state.counters["of_whole_replays"] = static_cast<double>(effort.whole_events);
  state.counters["share"] = static_cast<double>(effort.events) / static_cast<double>(effort.whole_events);
}

/// Replays ten thousand settings: a hundred stash sizes times a hundred prefetch windows.
void sweep_settings(benchmark::State& state, Replays replays) {
  constexpr std::size_t kSide = 100;
  const Trace trace = made_trace(kDemoBlocks);
  const Step step(trace.program);
  ReplayEffort effort;
  for (auto _ : state) {
    std::vector<ReplayTree::Job> jobs;
    for (std::size_t i = 0; i < kSide * kSide; ++i)
      jobs.push_back({with_setting({}, {StashUnit::kCopies, static_cast<std::int64_t>(i / kSide),
                                        static_cast<Bytes>(i % kSide) * kMiB})});
    effort = ReplayTree(step, kPcie)
                 .replay(jobs, {.shares = replays == Replays::kShared},
                         [](std::size_t, const ReplayTree::Replayed& replayed) {
                           benchmark::DoNotOptimize(&replayed.metrics);
                         });
  }
  count(state, effort);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kSide * kSide));
  state.SetLabel("settings");
}

/// Measures the exact Pareto frontier over thresholds, stashes and windows.
void tune_family(benchmark::State& state, int blocks, Replays replays) {
  const Trace trace = made_trace(blocks);
  const TraceSteps steps(trace);
  TuneGoal goal;
  goal.shares_replays = replays == Replays::kShared;
  TuneResult result;
  for (auto _ : state) result = tune(steps, kPcie, goal);
  state.counters["replayed"] = static_cast<double>(result.policies_tried);
  state.counters["settings"] = result.family.settings;
  state.counters["exact"] = result.family.is_exact ? 1 : 0;
  count(state, result.effort);
}

/// Measures the whole search with plans and bound, for a budget slightly above the least reachable memory.
void tune_plans(benchmark::State& state, int blocks, Replays replays) {
  const Trace trace = made_trace(blocks);
  const TraceSteps steps(trace);
  TuneGoal goal;
  goal.searches_plans = true;
  goal.shares_replays = replays == Replays::kShared;
  goal.memory_budget_bytes = tune(steps, kPcie, {}).device_peak_bound_bytes + 12 * kMiB;
  TuneResult result;
  for (auto _ : state) result = tune(steps, kPcie, goal);
  state.counters["tensors"] = static_cast<double>(result.plans->versions);
  state.counters["replayed"] = static_cast<double>(result.policies_tried);
  state.counters["gap_percent"] = result.goal_bound ? 100 * result.goal_bound->gap : -1;
  count(state, result.effort);
}

void register_all() {
  for (const Replays replays : {Replays::kShared, Replays::kApart}) {
    const std::string ending = replays == Replays::kShared ? "" : "_apart";
    const auto add = [&](const std::string& name, auto function, auto... arguments) {
      benchmark::RegisterBenchmark((name + ending).c_str(), function, arguments..., replays)
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    };
    add("tune/sweep", sweep_settings);
    add("tune/family", tune_family, kBlocks);
    add("tune/plans", tune_plans, kBlocks);
    add("tune/plans_2000", tune_plans, kManyBlocks);
  }
}

}  // namespace
}  // namespace offprof

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  offprof::register_all();
  benchmark::RunSpecifiedBenchmarks();
}

// What the tuner's parts cost: replays of many settings, the whole search, and plans for thousands of
// tensors.
#include <benchmark/benchmark.h>

#include "simulator/replay.h"
#include "simulator/trace_steps.h"
#include "simulator/tune.h"
#include "simulator/tuner/parallel.h"
#include "simulator/tuner/setting_sweep.h"
#include "tests/bench/transformer_program.h"

namespace offprof {
namespace {

/// Of 4 blocks as the zoo's transformer has them; of 31 about 5000 events, as GPT-2 has; of 167 about 2000
/// storages that may move.
constexpr int kDemoBlocks = 4, kBlocks = 31, kManyBlocks = 167;
const Link kPcie{{25e9, 10'000}, {25e9, 10'000}};

Trace made_trace(int blocks) {
  Trace trace;
  trace.environment.link = kPcie;
  trace.program = TransformerProgram::make(blocks);
  return trace;
}

/// Ten thousand settings, each replayed: a hundred stashes with a hundred windows.
void sweep_settings(benchmark::State& state) {
  constexpr std::size_t kSide = 100;
  const Trace trace = made_trace(kDemoBlocks);
  const Step step(trace.program);
  for (auto _ : state) {
    for_each_index(kSide * kSide, 0, [&](std::size_t i) {
      const Setting setting{StashUnit::kCopies, static_cast<std::int64_t>(i / kSide),
                            static_cast<Bytes>(i % kSide) * kMiB};
      benchmark::DoNotOptimize(replay(step, with_setting({}, setting), kPcie));
    });
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kSide * kSide));
  state.SetLabel("settings");
}

/// The exact frontier of thresholds, stashes and windows.
void tune_family(benchmark::State& state, int blocks) {
  const Trace trace = made_trace(blocks);
  const TraceSteps steps(trace);
  TuneResult result;
  for (auto _ : state) result = tune(steps, kPcie, {});
  state.counters["replayed"] = static_cast<double>(result.policies_tried);
  state.counters["settings"] = result.family.settings;
  state.counters["exact"] = result.family.is_exact ? 1 : 0;
}

/// The whole search, plans and bound included, for a budget a little above the least that is reachable.
void tune_plans(benchmark::State& state, int blocks) {
  const Trace trace = made_trace(blocks);
  const TraceSteps steps(trace);
  TuneGoal goal;
  goal.searches_plans = true;
  goal.memory_budget_bytes = tune(steps, kPcie, {}).device_peak_bound_bytes + 12 * kMiB;
  TuneResult result;
  for (auto _ : state) result = tune(steps, kPcie, goal);
  state.counters["tensors"] = static_cast<double>(result.plans->versions);
  state.counters["replayed"] = static_cast<double>(result.policies_tried);
  state.counters["gap_percent"] = result.goal_bound ? 100 * result.goal_bound->gap : -1;
}

void register_all() {
  benchmark::RegisterBenchmark("tune/sweep", sweep_settings)->UseRealTime()->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("tune/family", tune_family, kBlocks)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("tune/plans", tune_plans, kBlocks)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("tune/plans_2000", tune_plans, kManyBlocks)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace offprof

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  offprof::register_all();
  benchmark::RunSpecifiedBenchmarks();
}

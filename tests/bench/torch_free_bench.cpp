#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "simulator/allocator/caching_allocator.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"
#include "tests/bench/transformer_program.h"
#include "traces/model/trace.h"

namespace offprof {
namespace {

/// about 5000 events, as many as GPT-2 has
constexpr int kBlocks = 31;
/// About 18000 events and 2000 saved tensors. For comparison: 32 blocks of a transformer with 7 billion
/// parameters save about thirty tensors each.
constexpr int kLargeBlocks = 112;
const Link kPcie{{25e9, 10'000}, {25e9, 10'000}};

const std::vector<std::pair<std::string, Policy>>& policies() {
  static const auto* policies = [] {
    auto* all = new std::vector<std::pair<std::string, Policy>>{{"keep", preset_policy("keep")},
                                                                {"offload", preset_policy("offload")},
                                                                {"trl", preset_policy("trl")}};
    Policy tuned = preset_policy("offload");
    tuned.threshold_bytes = 1 * kMiB;
    tuned.stash_count = 5;
    tuned.prefetch_bytes = 64 * kMiB;
    all->emplace_back("tuned", tuned);
    return all;
  }();
  return *policies;
}

const StepProgram& large_program() {
  static const auto* program = new StepProgram(TransformerProgram::make(kLargeBlocks));
  return *program;
}

const StepProgram& program() {
  static const auto* program = new StepProgram(TransformerProgram::make(kBlocks));
  return *program;
}

class NoExecutor final : public Executor {
 public:
  void execute(const Command& command) override { benchmark::DoNotOptimize(command); }
};

/// Passes all events of the step to the scheduler. Returns the number of calls.
std::int64_t drive(Scheduler& scheduler, const Step& step) {
  std::int64_t calls = 0;
  for (const Event& event : step.events()) {
    ++calls;
    switch (event.kind) {
      case EventKind::kPack:
        scheduler.pack(event.id, step.requests()[event.id]);
        break;
      case EventKind::kUnpack:
        scheduler.unpack(event.id);
        break;
      case EventKind::kRelease:
        scheduler.release(event.id);
        break;
      case EventKind::kNodeEnd:
        scheduler.node_end({}, {});
        break;
      default:
        --calls;
    }
  }
  scheduler.backward_end();
  return calls;
}

void schedule(benchmark::State& state, const Policy& policy) {
  const Step step(program());
  NoExecutor executor;
  std::int64_t calls = 0;
  for (auto _ : state) calls += drive(*make_scheduler(policy, step.backward_order(), executor), step);
  state.SetItemsProcessed(calls);
  state.SetLabel("calls");
}

void replay_step(benchmark::State& state, const Policy& policy, const StepProgram& of_step) {
  const Step step(of_step);
  for (auto _ : state) benchmark::DoNotOptimize(replay(step, policy, kPcie));
  const auto events = static_cast<std::int64_t>(step.events().size());
  state.SetItemsProcessed(state.iterations() * events);
  state.SetLabel("events");
}

/// Measures the cost of a fork: copies a replay that has stopped before the first unpack of backward.
void fork_replay(benchmark::State& state, const Policy& policy, const StepProgram& of_step) {
  const Step step(of_step);
  std::size_t first_unpack = 0;
  while (step.events()[first_unpack].kind != EventKind::kUnpack) ++first_unpack;
  PartialReplay forward(step, policy, kPcie);
  forward.advance_to(first_unpack);
  for (auto _ : state) benchmark::DoNotOptimize(forward.fork(policy));
  state.SetLabel("forks");
  state.SetItemsProcessed(state.iterations());
}

/// Allocates and frees blocks of all sizes, with four hundred live at a time.
void allocate_and_free(benchmark::State& state, const std::string& settings) {
  CachingAllocator allocator(parse_allocator_settings(settings));
  std::mt19937 random(1);
  std::uniform_real_distribution<double> log_size(9, 26);
  std::vector<Bytes> sizes(4096);
  for (Bytes& size : sizes) size = static_cast<Bytes>(std::exp2(log_size(random)));
  std::vector<CachingAllocator::Handle> live;
  while (live.size() < 400) live.push_back(allocator.allocate(sizes[live.size()]));
  std::size_t next = 0;
  for (auto _ : state) {
    CachingAllocator::Handle& block = live[random() % live.size()];
    allocator.free(block);
    block = allocator.allocate(sizes[next++ % sizes.size()]);
  }
  state.SetItemsProcessed(2 * state.iterations());
  state.SetLabel("allocations and frees");
}

void register_all() {
  for (const auto& [name, policy] : policies()) {
    benchmark::RegisterBenchmark(("scheduler/" + name).c_str(), schedule, policy)
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark(("replay/" + name).c_str(), replay_step, policy, program())
        ->Unit(benchmark::kMicrosecond);
  }
  const Policy& tuned = policies().back().second;
  benchmark::RegisterBenchmark("replay/7b", replay_step, tuned, large_program())
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("fork/tuned", fork_replay, tuned, program())->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("fork/7b", fork_replay, tuned, large_program())->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("caching_allocator/plain", allocate_and_free, "");
  benchmark::RegisterBenchmark("caching_allocator/expandable", allocate_and_free, "expandable_segments:True");
}

}  // namespace
}  // namespace offprof

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("program_events", std::to_string(offprof::program().events.size()));
  offprof::register_all();
  benchmark::RunSpecifiedBenchmarks();
}

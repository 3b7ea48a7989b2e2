#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/steps/views.h"
#include "simulator/tuner/tune.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"
#include "traces/format/program_io.h"

namespace offprof {
namespace {

constexpr Bytes kMostBytes = 100;
constexpr Link kLink{{1e9, 5}, {0.7e9, 9}};

/// Records the range of device memory and the last bytes of device and host.
class MemoryRange final : public ReplayListener {
 public:
  void on_memory(Bytes device_bytes, Bytes host_bytes, Nanoseconds) override {
    least_device_bytes = std::min(least_device_bytes, device_bytes);
    last_device_bytes = device_bytes;
    last_host_bytes = host_bytes;
  }

  Bytes least_device_bytes = ChainSketch::kResidentBytes;
  Bytes last_device_bytes = ChainSketch::kResidentBytes;
  Bytes last_host_bytes = 0;
};

Policy any_policy() {
  if (*rc::gen::inRange(0, 3) == 0) return *random_disk_policy(kMostBytes);
  return *random_policy(*random_scheduler(), kMostBytes);
}

Metrics replayed(const Step& step, const Policy& policy) {
  return replay(step, policy, kLink).metrics;
}

Link any_link() {
  const auto direction = [] {
    return LinkDirection{*rc::gen::inRange(1, 40) * 1e8, *rc::gen::inRange(0, 50), *rc::gen::inRange(0, 10)};
  };
  return {direction(),
          direction(),
          *rc::gen::inRange(0, 20),
          *rc::gen::arbitrary<bool>(),
          {direction(), direction()}};
}

RC_GTEST_PROP(ReplayProperty, RandomProgramsAreValidInATrace, ()) {
  check_program(ChainSketch::program(*random_layers(kMostBytes)), "program");
}

RC_GTEST_PROP(ReplayProperty, NoPolicyGoesBelowTheBound, ()) {
  Trace trace;
  trace.program = ChainSketch::program(*rc::gen::resize(8, random_layers(kMostBytes)));
  const Policy policy = *random_policy(SchedulerKind::kOffload, kMostBytes);
  const TraceSteps steps(trace);
  const TuneResult result = tune(steps, kLink, {});
  const Metrics metrics = replayed(steps.step(policy), policy);
  RC_ASSERT(*metrics.device_peak_bytes >= result.device_peak_bound_bytes);
  RC_ASSERT(*metrics.step_time_ns >= result.step_time_bound_ns);
}

RC_GTEST_PROP(ReplayProperty, OffloadingAddsAtMostItsReloadsToThePeak, ()) {
  const Step step(ChainSketch::program(*random_layers(kMostBytes)));
  const Metrics keep = replayed(step, preset_policy("keep"));
  const Metrics metrics = replayed(step, any_policy());
  RC_ASSERT(*metrics.device_peak_bytes <= *keep.device_peak_bytes + *metrics.h2d_bytes);
}

RC_GTEST_PROP(ReplayProperty, AnUnlimitedStashHasTheMemoryOfKeep, ()) {
  const Step step(ChainSketch::program(*random_layers(kMostBytes)));
  Policy policy = preset_policy("offload");
  policy.stash_count = 1000;
  RC_ASSERT(replayed(step, policy).device_peak_bytes ==
            replayed(step, preset_policy("keep")).device_peak_bytes);
  RC_ASSERT(replayed(step, policy).h2d_bytes == 0);
}

RC_GTEST_PROP(ReplayProperty, EndsWithTheInitialMemoryAndNeverGoesBelow, ()) {
  const Step step(ChainSketch::program(*random_layers(kMostBytes)));
  MemoryRange range;
  replay(step, any_policy(), kLink, &range);
  RC_ASSERT(range.least_device_bytes == ChainSketch::kResidentBytes);
  RC_ASSERT(range.last_device_bytes == ChainSketch::kResidentBytes);
  RC_ASSERT(range.last_host_bytes == 0);
}

RC_GTEST_PROP(ReplayProperty, TimeIsComputePlusWaits, ()) {
  const Step step(ChainSketch::program(*random_layers(kMostBytes)));
  const Metrics metrics = replayed(step, any_policy());
  RC_ASSERT(*metrics.compute_ns == step.compute_ns());
  RC_ASSERT(*metrics.step_time_ns == *metrics.compute_ns + *metrics.exposed_ns);
  RC_ASSERT(*metrics.exposed_ns <= *metrics.d2h_busy_ns + *metrics.h2d_busy_ns);
}

RC_GTEST_PROP(ReplayProperty, StallsAddUpToTheStallTime, ()) {
  const StepProgram program = random_program(kMostBytes);
  const Step step(program, random_costs_with_slowdown(program));
  const Policy policy = any_policy();
  const Link link = any_link();
  Nanoseconds for_copies = 0, for_launch = 0;
  for (const Stall& stall : stalls(step, policy, link))
    (stall.reason == StallReason::kLaunch ? for_launch : for_copies) += stall.duration_ns;
  const Metrics metrics = replay(step, policy, link).metrics;
  RC_ASSERT(for_copies == *metrics.exposed_ns);
  RC_ASSERT(for_launch == metrics.launch_gap_ns.value_or(0));
  RC_ASSERT(*metrics.step_time_ns == *metrics.compute_ns + for_copies + for_launch);
}

RC_GTEST_PROP(ReplayProperty, AStreamBesideTheHostHasTheSameComputeTimeUnderEveryPolicy, ()) {
  StepProgram program = random_program(kMostBytes);
  if (program.work.empty()) program.work.resize(program.events.size());
  program.stream_commands.clear();  // waits for other streams count, and depend on the policy
  const Step step(program);
  Nanoseconds busy = 0;
  for (const Work& work : step.work()) busy += work.busy_ns;
  RC_ASSERT(*replay(step, any_policy(), any_link()).metrics.compute_ns == busy);
}

RC_GTEST_PROP(ReplayProperty, AnEndlessThresholdWithoutAStashIsKeep, ()) {
  const StepProgram program = random_program(kMostBytes);
  const Step step(program, random_costs_with_slowdown(program));
  const Link link = any_link();
  Policy policy = *random_policy(SchedulerKind::kOffload, kMostBytes);
  policy.threshold_bytes = std::numeric_limits<Bytes>::max();
  policy.stash_count = 0;
  RC_ASSERT(replay(step, policy, link).metrics == replay(step, preset_policy("keep"), link).metrics);
}

RC_GTEST_PROP(ReplayProperty, NoPolicyIsFasterThanKeep, ()) {
  const StepProgram program = random_program(kMostBytes);
  const Step step(program, random_costs_with_slowdown(program));
  const Link link = any_link();
  RC_ASSERT(*replay(step, any_policy(), link).metrics.step_time_ns >=
            *replay(step, preset_policy("keep"), link).metrics.step_time_ns);
}

RC_GTEST_PROP(ReplayProperty, ASharedLinkIsNeverFasterThanOneForEachDirection, ()) {
  const StepProgram program = random_program(kMostBytes);
  const Step step(program, random_costs(program));
  const Policy policy = any_policy();
  Link link = any_link(), shared = link;
  link.is_shared = false;
  shared.is_shared = true;
  RC_ASSERT(*replay(step, policy, shared).metrics.step_time_ns >=
            *replay(step, policy, link).metrics.step_time_ns);
}

RC_GTEST_PROP(ReplayProperty, ASharedLinkIsAsFastIfOnlyOneDirectionIsBusy, ()) {
  StepProgram program = random_program(kMostBytes);
  const auto comes_back = [](const Event& event) { return event.kind == EventKind::kUnpack; };
  const auto first = std::ranges::find_if(program.events, comes_back);
  program.work.resize(std::min<std::size_t>(program.work.size(), first - program.events.begin()));
  program.events.erase(first, program.events.end());
  program.stream_commands.clear();  // copies of the program go in both directions
  const Step step(program, random_costs(program));
  const Policy policy = any_policy();
  Link link = any_link(), shared = link;
  link.is_shared = false;
  shared.is_shared = true;
  RC_ASSERT(replay(step, policy, shared).metrics == replay(step, policy, link).metrics);
}

RC_GTEST_PROP(ReplayProperty, AFasterLinkIsNeverSlower, ()) {
  const StepProgram program = random_program(kMostBytes);
  const Step step(program, random_costs(program));
  const Policy policy = any_policy();
  const Link link = any_link();
  Link faster = link;
  LinkDirection& direction =
      **rc::gen::element(&faster.d2h, &faster.h2d, &faster.disk.write, &faster.disk.read);
  direction.bytes_per_second *= *rc::gen::inRange(1, 5);
  direction.latency_ns -= *rc::gen::inRange(0L, direction.latency_ns + 1);
  direction.start_ns -= *rc::gen::inRange(0L, direction.start_ns + 1);
  faster.launch_ns -= *rc::gen::inRange(0L, faster.launch_ns + 1);
  RC_ASSERT(*replay(step, policy, faster).metrics.step_time_ns <=
            *replay(step, policy, link).metrics.step_time_ns);
}

RC_GTEST_PROP(ReplayProperty, MemoryAndCopiedBytesDoNotDependOnTheLink, ()) {
  const Step step(ChainSketch::program(*random_layers(kMostBytes)));
  const Policy policy = any_policy();
  const Metrics fast = replay(step, policy, {{1e12, 0}, {1e12, 0}, 0, false, {{1e5, 0}, {1e5, 0}}}).metrics;
  const Metrics slow = replay(step, policy, {{1e6, 1000}, {1e6, 1000}}).metrics;
  RC_ASSERT(fast.device_peak_bytes == slow.device_peak_bytes);
  RC_ASSERT(fast.host_peak_bytes == slow.host_peak_bytes);
  RC_ASSERT(fast.disk_peak_bytes == slow.disk_peak_bytes);
  RC_ASSERT(fast.disk_write_bytes == slow.disk_write_bytes);
  RC_ASSERT(fast.disk_read_bytes == slow.disk_read_bytes);
  RC_ASSERT(fast.d2h_bytes == slow.d2h_bytes);
  RC_ASSERT(fast.h2d_bytes == slow.h2d_bytes);
}

RC_GTEST_PROP(ReplayProperty, OffloadBringsEachCopyBackAtMostOnce, ()) {
  const Step step(ChainSketch::program(*random_layers(kMostBytes)));
  const Policy policy = *random_policy(SchedulerKind::kOffload, kMostBytes);
  const Metrics metrics = replayed(step, policy);
  RC_ASSERT(*metrics.h2d_bytes <= *metrics.d2h_bytes);
  RC_ASSERT(*metrics.host_peak_bytes <= policy.host_memory_bytes.value_or(*metrics.d2h_bytes));
}

}  // namespace
}  // namespace offprof

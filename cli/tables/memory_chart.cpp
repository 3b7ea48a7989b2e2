#include "cli/tables/memory_chart.h"

#include <algorithm>

#include "simulator/replay/replay.h"

namespace offprof {
namespace {

constexpr std::size_t kChartHeight = 8;
/// Records the changes of memory and the beginnings of phases.
class MemoryRecorder : public ReplayListener {
 public:
  MemoryRecorder(const StepProgram& program, const Step& step, MemoryOverStep& memory)
      : program_(program), step_(step), memory_(memory) {}

  /// A phase begins when the event before its first event is done.
  void on_event(std::size_t index, Nanoseconds now) override {
    const auto upto = static_cast<std::size_t>(step_.program_index()[index]);
    for (; next_ < upto; ++next_) {
      const Event& event = program_.events[next_];
      if (event.kind == EventKind::kPhase) memory_.phases.push_back({last_, program_.names[event.id]});
    }
    last_ = now;
  }

  void on_memory(Bytes device_bytes, Bytes, Nanoseconds now) override {
    auto& samples = memory_.device_bytes;
    if (samples.empty() || samples.back().value != device_bytes) samples.push_back({now, device_bytes});
  }

 private:
  const StepProgram& program_;
  const Step& step_;
  MemoryOverStep& memory_;
  std::size_t next_ = 0;
  Nanoseconds last_ = 0;
};

}  // namespace

MemoryOverStep replay_memory(const TraceSteps& steps, const Policy& policy, const Link& link) {
  MemoryOverStep memory;
  const StepProgram& program = steps.program(policy);
  const Step& step = steps.step(policy);
  MemoryRecorder recorder(program, step, memory);
  const Metrics metrics = replay(step, policy, link, &recorder).metrics;
  memory.end_ns = metrics.step_time_ns.value_or(0);
  memory.peak_bytes = metrics.device_peak_bytes.value_or(0);
  const Policy keep = preset_policy("keep");
  memory.keep_peak_bytes = replay(steps.step(keep), keep, link).metrics.device_peak_bytes.value_or(0);
  return memory;
}

std::string draw_memory(const MemoryOverStep& memory, const Page& page) {
  Chart chart;
  chart.samples = memory.device_bytes;
  chart.end = memory.end_ns;
  chart.marks = memory.phases;
  chart.format_value = [](std::int64_t bytes) { return format_bytes(bytes); };
  return draw_chart(chart, kChartHeight, page);
}

}  // namespace offprof

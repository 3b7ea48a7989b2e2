// Writes two traces of a chain of layers, with nothing offloaded and with everything offloaded, and of the
// second the predicted device peak and a memory snapshot:
// write_report_traces KEEP OFFLOAD PEAK_BYTES SNAPSHOT.

#include <fmt/format.h>

#include <string>
#include <utility>

#include "simulator/report/memory_snapshot.h"
#include "simulator/report/step_record.h"
#include "simulator/steps/trace_steps.h"
#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

constexpr int kLayers = 12;

std::int32_t add_name(StepProgram& program, const std::string& name) {
  program.names.push_back(name);
  return static_cast<std::int32_t>(program.names.size() - 1);
}

/// A program in which each layer has a module and a source line.
StepProgram program() {
  std::vector<LayerSketch> layers;
  for (int i = 0; i < kLayers; ++i)
    layers.push_back({.bytes = (1 + i % 4) * 4 * kMiB,
                      .scratch_bytes = 2 * kMiB,
                      .forward_ns = 100'000 + 20'000 * i,
                      .backward_ns = 200'000 + 40'000 * i});
  StepProgram program = ChainSketch::program(layers);
  for (std::string& name : program.names) {
    if (name == "layer" || name == "op") name = "aten::linear";
    if (name == "LayerBackward0") name = "LinearBackward0";
  }
  for (std::size_t i = 0; i < program.saved.size(); ++i) {
    SavedTensor& saved = program.saved[i];
    saved.module = add_name(program, fmt::format("blocks.layer{}.{}", i, i % 2 == 0 ? "attention" : "mlp"));
    saved.line = add_name(program, fmt::format("model.py:{}", 10 + i));
    saved.layout = TensorLayout{"float32", {saved.bytes / 4}, {1}};
  }
  return program;
}

Trace trace(const std::string& policy) {
  Trace trace = sample_trace();
  trace.program = program();
  trace.policy = preset_policy(policy);
  trace.environment.link = {{40e9, 3000}, {40e9, 3000}};
  trace.environment.device_memory_bytes = 200 * kMiB;
  trace.metrics = TraceSteps(trace).predict(trace.policy, trace.environment.link);
  return trace;
}

std::string snapshot_of(const Trace& trace) {
  const TraceSteps steps(trace);
  return memory_snapshot(trace.program, record_step(trace.program, steps.step(trace.policy), trace.policy,
                                                    trace.environment.link));
}

}  // namespace
}  // namespace offprof

int main(int argc, char** argv) {
  using namespace offprof;
  if (argc != 5) return 2;
  const Trace offloaded = trace("offload");
  write_trace(argv[1], trace("keep"));
  write_trace(argv[2], offloaded);
  write_file(argv[3], fmt::format("{}\n", *offloaded.metrics.device_peak_bytes));
  write_file(argv[4], snapshot_of(offloaded));
  return 0;
}

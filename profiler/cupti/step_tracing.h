#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/cupti/gpu_tracer.h"
#include "traces/model/tracing.h"

namespace offprof {

/// Traces the GPU's activity in steps, if that is possible. Otherwise steps run without tracing, and the
/// notes say what is missing and why.
class StepTracing {
 public:
  /// Creates an object that traces nothing and has no notes.
  StepTracing() = default;
  explicit StepTracing(std::unique_ptr<GpuTracer> tracer) : tracer_(std::move(tracer)) {}
  /// Creates the tracing for the device of that name, as in RunRequest::device. Call it before the device is
  /// created, since CUPTI must be there first.
  static StepTracing of_device(const std::string& device);

  bool is_on() const { return tracer_ != nullptr; }
  /// Starts tracing; the device must be idle. Returns nullptr if nothing is traced.
  GpuTracer* begin(TraceDetail detail);
  /// Stops tracing; the device must be idle. Returns an empty activity if `begin` returned nullptr.
  GpuActivity end();
  /// Returns how all steps so far were traced and what is missing; nullopt: none was traced.
  const std::optional<Tracing>& summary() const { return summary_; }
  /// Returns notes for the reader of the trace, one sentence each.
  std::vector<std::string> take_notes();

 private:
  void give_up(const std::string& why);
  void count(const GpuActivity& activity);

  std::unique_ptr<GpuTracer> tracer_;
  std::optional<Tracing> summary_;
  std::vector<std::string> notes_;
};

}  // namespace offprof

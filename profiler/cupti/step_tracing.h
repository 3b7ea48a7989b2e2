#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/cupti/gpu_tracer.h"
#include "traces/tracing.h"

namespace offprof {

/// Traces what a GPU does in steps, where that can be done. Where it cannot, steps go on without, and the
/// notes say what is missing and why.
class StepTracing {
 public:
  /// Nothing is traced, and nothing is said of it.
  StepTracing() = default;
  explicit StepTracing(std::unique_ptr<GpuTracer> tracer) : tracer_(std::move(tracer)) {}
  /// For a device of that name, as RunRequest::device has it. To be made before the device is: CUPTI wants to
  /// be there first.
  static StepTracing of_device(const std::string& device);

  bool is_on() const { return tracer_ != nullptr; }
  /// From here on; the device must be idle. nullptr: nothing is traced.
  GpuTracer* begin(TraceDetail detail);
  /// To here; the device must be idle. Empty where `begin` said nullptr.
  GpuActivity end();
  /// How all steps so far were traced and what of them is missing; nullopt: none was.
  const std::optional<Tracing>& summary() const { return summary_; }
  /// What the reader of a trace should know, a sentence each.
  std::vector<std::string> take_notes();

 private:
  void give_up(const std::string& why);
  void count(const GpuActivity& activity);

  std::unique_ptr<GpuTracer> tracer_;
  std::optional<Tracing> summary_;
  std::vector<std::string> notes_;
};

}  // namespace offprof

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "profiler/cupti/gpu_tracer.h"

namespace offprof {

/// Traces what a GPU does in recorded steps, where that can be done. Where it cannot, steps go on without,
/// and the notes say what is missing and why.
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
  GpuTracer* begin();
  /// To here; the device must be idle. Empty where `begin` said nullptr.
  GpuActivity end();
  /// What the reader of a trace should know, a sentence each.
  std::vector<std::string> take_notes();

 private:
  void give_up(const std::string& why);
  void count(const GpuActivity& activity);

  std::unique_ptr<GpuTracer> tracer_;
  std::size_t dropped_ = 0, untimed_ = 0, unreadable_buffers_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace offprof

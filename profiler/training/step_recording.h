#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autograd/offload_step.h"
#include "engine/devices/device.h"
#include "profiler/cupti/gpu_tracer.h"
#include "profiler/recorder/marking_listener.h"
#include "profiler/recorder/pass_recorder.h"
#include "profiler/recording/step_result.h"
#include "profiler/steps/step_order.h"

namespace offprof {

/// Records one step as its order says, and times it. The calls are begin_phase for each phase, end_step, and,
/// when the device may wait, finish.
class StepRecording {
 public:
  /// Begins the step. `device` must outlive it, and so must the order's listener. `tracer`: see PassRecorder.
  StepRecording(Device& device, const StepOrder& order, GpuTracer* tracer);

  /// Returns the listener that the step has to notify; nullptr: nobody listens.
  StepListener* listener() const { return listener_; }

  /// Ends the previous phase and begins the next one. `name` must live as long as the result.
  void begin_phase(std::string_view name);

  /// Ends the last phase, and stores how long the compute stream was busy, if that is known.
  void end_step(StepResult& result);

  /// Waits until the device is idle, and stores the times and the recording. Throws the first failure of a
  /// mark.
  void finish(StepResult& result);

 private:
  Device& device_;
  StepListener* listener_;
  std::optional<MarkingListener> marks_;
  std::optional<PassRecorder> recorder_;
  Device::TimeMark begin_ = Device::kFailedMark, end_ = Device::kFailedMark;
  std::vector<std::pair<std::string_view, Device::TimeMark>> phases_;
};

}  // namespace offprof

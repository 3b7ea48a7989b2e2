#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autograd/offload_step.h"
#include "engine/devices/device.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/recorder/code_location.h"
#include "profiler/recorder/marking_listener.h"
#include "profiler/recorder/pass_recorder.h"
#include "profiler/recording/step_result.h"
#include "profiler/steps/step_order.h"

namespace offprof {

/// A training step under an order: counts, times and records it, whoever runs its operators. The caller makes
/// `step()` current while the step runs, announces the phases, and calls `end` and `finish` in this order.
class MeasuredStep {
 public:
  /// Waits until the device is idle, resets its counters and begins the step. `device`, `tracing` and
  /// `order.listener` must outlive this object. `tracing` is for the device's GPU and orders that are traced;
  /// nullptr: none.
  MeasuredStep(Device& device, const StepOrder& order, std::shared_ptr<const Residents> residents,
               StepTracing* tracing = nullptr, const CodeLocator& locate = location_in_torch_script);
  /// Stops listening, since the step's graph may outlive this object.
  ~MeasuredStep();
  MeasuredStep(const MeasuredStep&) = delete;
  MeasuredStep& operator=(const MeasuredStep&) = delete;

  const std::shared_ptr<OffloadStep>& step() const { return step_; }
  /// Returns the listener of the step; nullptr: none.
  StepListener* listener() const { return listener_; }

  /// Stops all recording in a forked child process. Only the destructor may be called there afterwards, and
  /// need not be.
  void forget_in_child();

  /// Begins a phase of the step: `forward`, `backward`, `optimizer`.
  void begin_phase(std::string_view name);
  /// Ends the step. Memory that is freed from here on belongs to the time between steps.
  void end();
  /// Waits until the device is idle and returns the figures of the step. Throws the first failure of a mark,
  /// and the errors of PassRecorder::finish.
  StepResult finish();

 private:
  void begin_counting();
  void listen(const StepOrder& order, const CodeLocator& locate);
  void take_phases();
  void take_figures();

  Device& device_;
  StepTracing* tracing_;  ///< nullptr: this step is not traced
  bool leaves_cache_peaks_;
  StepListener* listener_;
  std::optional<MarkingListener> marks_;
  std::optional<PassRecorder> recorder_;
  std::shared_ptr<OffloadStep> step_;
  StepResult result_;
  DeviceCounts counts_at_begin_;
  Device::TimeMark begin_ = Device::kFailedMark, end_ = Device::kFailedMark;
  std::vector<std::pair<std::string_view, Device::TimeMark>> phases_;
};

}  // namespace offprof

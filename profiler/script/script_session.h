#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/autograd/autograd_engine.h"
#include "engine/devices/device.h"
#include "engine/devices/host_memory.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/plugin/plugin.h"
#include "profiler/plugin/script_io.h"
#include "profiler/stages/record_program.h"
#include "profiler/steps/measured_step.h"
#include "profiler/steps/step_script.h"

namespace offprof {

/// Phase of a step that a program runs.
enum class ScriptPhase : std::uint8_t { kForward, kBackward, kOptimizer };

/// Tensors of a program that outlive its steps.
struct ProgramTensors {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
};

/// Records, calibrates and measures the steps of a program that runs them itself, such as a training script.
/// The program reports where its steps begin and end, on one thread:
///
///     end_step();                        // of the step before
///     while (begin_step(tensors)) {      // until everything is recorded
///       ...                              // forward
///       begin_phase(ScriptPhase::kBackward);
///       ...
///       end_backward();
///       begin_phase(ScriptPhase::kOptimizer);
///       ...
///       end_step();
///     }
///
/// The autograd engine must have been interposed (interpose_autograd_engine) or installed.
class ScriptSession {
 public:
  /// `request.model_path` is the name of the program, and `request.settings.warmup` its number of steps that are
  /// not recorded. After the request's policy, those in `compared` are measured as well. `device` and `tracing`
  /// must outlive the session. `tracing` is for the device's GPU; nullptr: none.
  ScriptSession(RunRequest request, ModelInfo model, std::vector<Policy> compared, Device& device,
                Progress progress, StepTracing* tracing = nullptr);
  ScriptSession(const ScriptSession&) = delete;
  ScriptSession& operator=(const ScriptSession&) = delete;

  /// Begins the next step. Returns false, without a step, once everything is recorded. Throws Error (input) if
  /// the steps cannot be recorded, and what the device throws.
  bool begin_step(const ProgramTensors& tensors);
  void begin_phase(ScriptPhase phase);
  void end_backward();
  /// Ends the current step, if there is one. Throws the errors of MeasuredStep::finish.
  void end_step();
  /// Abandons the current step, for example because the program failed in it.
  void abandon_step();

  /// Returns true if the step program is recorded: the trace of `result` is then complete but for measurements.
  bool is_recorded() const { return is_recorded_; }
  /// Returns the result so far, with the device's notes until now.
  RunResult& result();
  const std::vector<ComparedMeasurement>& compared() const { return measured_; }
  /// Returns the number of steps that began.
  std::int64_t steps() const { return steps_; }

 private:
  StepScript<void> profile();
  void note_program(const ProgramTensors& tensors);
  const StepOrder* next_order();

  RunRequest request_;
  std::vector<Policy> compared_;
  Device& device_;
  Progress progress_;
  StepTracing* tracing_;
  std::shared_ptr<const Residents> residents_ = std::make_shared<const Residents>();
  StepSource source_;
  RunResult result_;
  std::vector<ComparedMeasurement> measured_;
  bool is_recorded_ = false;
  std::int64_t steps_ = 0;
  StepScript<void> script_;
  bool has_begun_ = false;              ///< the script
  const StepOrder* order_ = nullptr;    ///< of the current step
  std::optional<StepResult> finished_;  ///< of the last step, which the script has not seen yet
  std::optional<MeasuredStep> step_;
  std::optional<CurrentStep> current_;
  std::optional<ScriptPhase> phase_;
  /// Waits at the end, since copies may still use memory that is freed with the session.
  IdleAtEnd idle_at_end_;
};

}  // namespace offprof

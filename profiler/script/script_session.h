#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/autograd/autograd_engine.h"
#include "engine/devices/device.h"
#include "engine/devices/host_memory.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/plugin/plugin.h"
#include "profiler/plugin/script_io.h"
#include "profiler/recorder/code_location.h"
#include "profiler/recording/step_groups.h"
#include "profiler/script/leaks.h"
#include "profiler/script/step_filter.h"
#include "profiler/stages/policy_steps.h"
#include "profiler/stages/record_program.h"
#include "profiler/steps/measured_step.h"
#include "profiler/steps/program_tensors.h"
#include "profiler/steps/step_budget.h"
#include "profiler/steps/step_script.h"

namespace offprof {

/// Phase of a step that a program runs.
enum class ScriptPhase : std::uint8_t { kForward, kBackward, kOptimizer };

/// Records, calibrates and measures the steps of a program that runs them itself, such as a training script.
/// Steps may differ, as with sequences of several lengths, or a validation every few steps: it records those
/// of one kind (StepGroups), and skips the others.
///
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
  /// Records the program of `request`, whose `run.settings.warmup` is the number of steps that are not
  /// recorded. The step before the first begin_step is one of them. `device` and `tracing` must outlive the
  /// session. `tracing` is for the device's GPU; nullptr: none.
  ScriptSession(
      ScriptRequest request, Device& device, Progress progress, StepTracing* tracing = nullptr,
      CodeLocator locate = [] { return CodeLocation{}; });
  ScriptSession(const ScriptSession&) = delete;
  ScriptSession& operator=(const ScriptSession&) = delete;

  /// Begins the next step. Returns false, without a step, once everything is recorded. Throws Error (input)
  /// if the steps cannot be recorded, and what the device throws.
  bool begin_step(const ProgramTensors& tensors);
  void begin_phase(ScriptPhase phase);
  /// Reports that the program calls one of its root modules with these tensors, which no operator with a
  /// history made, or that the call has returned these. They are ignored outside of a step.
  void begin_call(std::span<const at::Tensor> inputs);
  void end_call(std::span<const at::Tensor> outputs);
  void end_backward();
  /// Ends the current step, if there is one. Throws the errors of MeasuredStep::finish.
  void end_step();
  /// Abandons the current step, for example because the program failed in it.
  void abandon_step();

  /// Leaves the program alone in a forked child process, such as a worker that loads data. The session must
  /// not be used there any more, nor destroyed: its copy threads do not exist in the child.
  void forget_in_child();

  /// Begins a step under `policy` that is neither recorded nor measured, once everything is recorded. It ends
  /// with end_step.
  void begin_unrecorded_step(const Policy& policy, const ProgramTensors& tensors);
  /// Returns true if steps under `policy` lose something, so that gradients need not be bitwise equal. Call
  /// it once everything is recorded.
  bool may_lose(const Policy& policy) const;

  /// Returns true if the step program is recorded: the trace of `result` is then complete but for
  /// measurements.
  bool is_recorded() const { return is_recorded_; }
  /// Returns the result so far, with the device's notes until now.
  RunResult& result();
  const std::vector<ComparedMeasurement>& compared() const { return compared_; }
  /// Describes the kinds of steps that were observed: see StepGroups.
  std::vector<StepGroup> groups() const { return groups_.summary(); }
  /// Returns the number of steps that were skipped because they were unlike those to record.
  std::int64_t skipped_steps() const { return skipped_; }
  /// Returns the number of steps of the program that have ended, if it ends each before it begins the next.
  /// The one before the first begin_step counts.
  std::int64_t steps() const { return steps_; }
  /// Returns how many more steps the recording takes at most. Steps that are skipped do not count.
  std::int64_t steps_left() const { return most_steps_ - taken_; }

 private:
  StepScript<void> profile();
  void note_program(const ProgramTensors& tensors);
  OffloadStep* current_step() const;
  void go_on();
  void observe();
  void skip_step();
  void take(StepResult step);
  void note_growth();
  bool follow_growth(Bytes growth);

  ScriptRequest request_;
  Device& device_;
  Progress progress_;
  StepTracing* tracing_;
  CodeLocator locate_;
  StepBudget budget_;
  std::int64_t most_steps_ = 0;  ///< of the program, without those that are skipped
  std::int64_t taken_ = 0;       ///< of them, those that have ended
  std::shared_ptr<const Residents> residents_ = std::make_shared<const Residents>();
  StepSource source_;
  RunResult result_;
  std::vector<ComparedMeasurement> compared_;
  StepGroups groups_;
  std::optional<StepFilter> filter_;  ///< once the group is chosen
  std::int64_t skipped_ = 0;
  int skipped_in_a_row_ = 0;
  bool is_recorded_ = false;
  std::int64_t steps_ = 0;
  StepScript<void> script_;
  bool has_ended_ = false;  ///< the script
  const StepOrder* order_ =
      nullptr;  ///< of the current step; nullptr: the script has not begun, or has ended
  std::optional<PolicySteps> policy_steps_;  ///< once the step program is recorded
  std::shared_ptr<OffloadStep> unrecorded_;  ///< the current step, if it is not recorded
  std::optional<Policy> limited_by_;         ///< the policy whose memory limits hold for unrecorded steps
  std::optional<StepResult> finished_;       ///< of the last step, which the script has not seen yet
  std::vector<Bytes> resident_bytes_;        ///< at the beginning of each step that was run as ordered
  LeakFinder leaks_;
  std::optional<MeasuredStep> step_;
  std::optional<CurrentStep> current_;
  std::optional<ScriptPhase> phase_;
  /// Waits at the end, since copies may still use memory that is freed with the session.
  IdleAtEnd idle_at_end_;
};

}  // namespace offprof

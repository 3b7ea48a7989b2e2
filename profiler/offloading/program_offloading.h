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
#include "profiler/offloading/offloading_report.h"
#include "profiler/offloading/placement_chooser.h"
#include "profiler/offloading/saved_notes.h"
#include "profiler/recorder/code_location.h"
#include "profiler/recording/step_result.h"
#include "profiler/steps/measured_step.h"
#include "profiler/steps/program_tensors.h"
#include "traces/format/policy_io.h"

namespace offprof {

/// Offloads the saved tensors of a program that runs its steps itself, under one policy. Nothing is recorded.
///
/// The first whole steps are only observed: they have no plan, no prefetch, no encoding, and no rules that
/// name operators or modules, since these need the order, the contents and the origins of the saved tensors.
/// Under a policy that recomputes, nothing is offloaded in them, and two that save the same tensors must
/// agree on the recompute steps. Later steps have all of it; they recompute only what their own operators
/// have made in the same way. A plan is used if the saved tensors are those that it was made for; if they are
/// not, in any step, the policy file's fallback (PolicyFile::fallback) or else the threshold decides from
/// there on, and a note says so once. Gradients do not depend on any of this, except by transforms that lose
/// something.
///
/// The functions are called on one thread at a time. The autograd engine must have been interposed
/// (interpose_autograd_engine) or installed.
class ProgramOffloading {
 public:
  /// Place in the program where a step begins or ends.
  enum class Boundary : std::uint8_t {
    kEntry,    ///< where the program enters the context
    kStepEnd,  ///< where a step of the program ends
  };

  /// `file`: see offloading_policy; open_disk_for has opened the disk that its policies need. `device` must
  /// outlive all tensors that are saved. `locate`: see PassRecorder.
  ProgramOffloading(PolicyFile file, Device& device, CodeLocator locate);
  ~ProgramOffloading();
  ProgramOffloading(const ProgramOffloading&) = delete;
  ProgramOffloading& operator=(const ProgramOffloading&) = delete;

  /// Sets the tensors that outlive the steps which begin from now on.
  void set_tensors(const ProgramTensors& tensors);
  /// Begins a step. Tensors that are older than it stay on the device. There must be no step.
  void begin_step(Boundary where);
  /// Ends the step, if there is one, and waits until the device is idle. A step that begins and ends at the
  /// same kind of boundary is a whole one: it counts in the report. Its graph may outlive it. Throws what the
  /// device throws.
  void end_step(Boundary where);
  /// Forgets the step, for example because the program failed in it.
  void abandon_step();
  /// Reports that the program calls one of its root modules with these tensors, which no operator with a
  /// history made, or that the call has returned these. They are ignored outside of a step.
  void begin_call(std::span<const at::Tensor> inputs);
  void end_call(std::span<const at::Tensor> outputs);
  /// Announces that backward is done.
  void end_backward();
  /// Leaves the program alone in a forked child process, where the object must not be used any more.
  void forget_in_child();

  /// Lets tensors that autograd saves go through the step, until `leave`. There must be a step.
  void enter();
  void leave();

  bool has_step() const { return step_.has_value(); }
  /// Returns true if the step has saved tensors so far.
  bool has_saved() const { return step_ && !step_->step()->ledger().empty(); }
  /// Returns true if the policy could not be carried out in the step, for example for lack of device memory.
  /// All later calls of the step fail then.
  bool has_failed() const { return step_ && step_->step()->has_failed(); }
  /// Returns true if nobody holds a saved tensor of the step any more.
  bool is_idle() const { return !current_ && (!step_ || step_->step().use_count() == 1); }

  /// Returns the figures so far.
  OffloadingReport report() const;
  /// Returns notes for the user that were not returned before, a sentence each.
  std::vector<std::string> take_notes();

 private:
  bool observes() const { return observed_steps_left_ > 0; }
  std::optional<Policy> fallback() const;
  bool needs_origins() const;
  bool recomputes() const;
  void settle_recomputations(SavedNotes& notes);
  void begin_guard(StepGuide& guide);
  void end_guard();
  Policy policy_of_step() const;
  std::string use_fallback();
  StepOrder order_of_step();
  void learn(SavedNotes notes);
  void add_result(StepResult result);
  void note_missing_recomputations();
  void note_left_plan();

  PolicyFile file_;
  Device& device_;
  CodeLocator locate_;
  int observed_steps_left_ = 0;  ///< steps to observe; 0: everything is known, or nothing has to be
  bool has_step_ends_ = false;   ///< a step has begun where a step of the program ended
  bool has_noted_left_plan_ = false;
  std::shared_ptr<const SavedNotes> notes_;
  std::shared_ptr<const KnownRecomputations> recomputations_;  ///< nullptr: not settled yet
  std::shared_ptr<const NotedPlacements>
      placements_;  ///< of steps that are not observed; nullptr: not made yet
  std::shared_ptr<const Residents> residents_ = std::make_shared<const Residents>();
  Bytes older_bytes_ = 0;

  Boundary begun_at_ = Boundary::kEntry;
  bool is_entered_ = false;
  std::optional<NoteTaker> note_taker_;
  std::shared_ptr<PlacementChooser> chooser_;
  std::shared_ptr<RecomputeGuard> guard_;  ///< of the step; nullptr: it recomputes nothing
  std::optional<MeasuredStep> step_;
  std::optional<CurrentStep> current_;

  Boundary counted_at_ = Boundary::kEntry;  ///< boundary of the steps in `results_`
  std::vector<StepResult> results_;         ///< of the last whole steps
  Ledger ledger_;                           ///< of the last one
  std::int64_t steps_ = 0;
  std::vector<std::string> user_notes_;
};

}  // namespace offprof

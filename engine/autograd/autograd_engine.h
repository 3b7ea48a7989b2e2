#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace torch::autograd {
struct SavedVariableHooks;
}

namespace offprof {

class OffloadStep;

/// Replaces LibTorch's autograd engine with ours, permanently. Ours differs in two ways: while a step is
/// current, each saved tensor goes through the step; and everything that a backward held is freed when the
/// backward returns, whatever threads it ran on. Call once, before the first backward of the process: only
/// the engine that executes first gets device threads.
void install_autograd_engine();

/// Lets the saved tensors of an engine that runs backward go through the current step, and leaves everything
/// else to it: the engine of Python, which cannot be replaced. Saved-tensor hooks of that engine (those of
/// the user, and of non-reentrant checkpointing) take precedence. Permanent; call once, after the other
/// engine was installed. Memory that a device's thread releases after a backward may be freed a little later
/// than the backward returns.
void interpose_autograd_engine();

/// Returns the number of tensors that went through saved-tensor hooks of the engine behind ours since the
/// process began: see interpose_autograd_engine.
std::int64_t tensors_saved_by_other_hooks();

/// Makes `step` current while this object lives: tensors that autograd saves on any thread go through `step`.
/// If the step watches random draws, it is notified of those of this thread. Scopes nest: the innermost
/// counts.
class CurrentStep {
 public:
  explicit CurrentStep(std::shared_ptr<OffloadStep> step);
  ~CurrentStep();
  CurrentStep(const CurrentStep&) = delete;
  CurrentStep& operator=(const CurrentStep&) = delete;

 private:
  std::shared_ptr<OffloadStep> before_;
  OffloadStep* drawing_before_ = nullptr;
  std::optional<std::uint64_t> callback_{};  ///< LibTorch's handle, if this scope registered the callback
};

/// Replaces the saved-tensor hooks of this thread while this object lives: tensors that autograd saves go
/// through hooks that `make` creates, not through the step. Scopes nest: the innermost counts.
class SavingElsewhere {
 public:
  using MakeHooks = std::function<std::unique_ptr<torch::autograd::SavedVariableHooks>()>;

  explicit SavingElsewhere(MakeHooks make);
  ~SavingElsewhere();
  SavingElsewhere(const SavingElsewhere&) = delete;
  SavingElsewhere& operator=(const SavingElsewhere&) = delete;

 private:
  MakeHooks make_;
  const MakeHooks* before_;
};

}  // namespace offprof

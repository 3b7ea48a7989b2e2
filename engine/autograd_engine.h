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

/// Puts our engine in the place of LibTorch's autograd engine, for good. It differs in two things: while a
/// step is current, each saved tensor goes through it; and what a backward held is gone when it returns,
/// whatever threads it ran on. Call once, before the first backward of the process: the engine that executes
/// first is the only one that gets device threads.
void install_autograd_engine();

/// While it lives, tensors that autograd saves on any thread go through `step`, which is told of what this
/// thread draws where it watches that. They nest: the innermost counts.
class CurrentStep {
 public:
  explicit CurrentStep(std::shared_ptr<OffloadStep> step);
  ~CurrentStep();
  CurrentStep(const CurrentStep&) = delete;
  CurrentStep& operator=(const CurrentStep&) = delete;

 private:
  std::shared_ptr<OffloadStep> before_;
  OffloadStep* drawing_before_ = nullptr;
  std::optional<std::uint64_t> callback_{};  ///< handle of LibTorch's, where the step watches draws
};

/// While it lives, tensors that autograd saves on this thread go through hooks that `make` makes, and not
/// through the step. They nest: the innermost counts.
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

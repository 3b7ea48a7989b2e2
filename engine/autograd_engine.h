#pragma once

#include <memory>

namespace offprof {

class OffloadStep;

/// Puts our engine in the place of LibTorch's autograd engine, for good. It differs in two things: while a
/// step is current, each saved tensor goes through it; and what a backward held is gone when it returns,
/// whatever threads it ran on. Call once, before the first backward of the process: the engine that executes
/// first is the only one that gets device threads.
void install_autograd_engine();

/// While it lives, tensors that autograd saves on any thread go through `step`.
class CurrentStep {
 public:
  explicit CurrentStep(std::shared_ptr<OffloadStep> step);
  ~CurrentStep();
  CurrentStep(const CurrentStep&) = delete;
  CurrentStep& operator=(const CurrentStep&) = delete;
};

}  // namespace offprof

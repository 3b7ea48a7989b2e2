#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/error.h"

namespace offprof {

/// Returns the paths of the submodules that match one of `patterns`, in the model's order; of nested ones the
/// outermost. Only submodules with a forward count. Patterns are those of file names; `*` matches dots too:
/// `layers.*` is each of the layers.
///
/// Throws Error (input) if a pattern is empty or matches no submodule, or if the model has no submodules.
std::vector<std::string> checkpointed_paths(const torch::jit::Module& model,
                                            const std::vector<std::string>& patterns);

/// Makes submodules of a model checkpointed modules (CheckpointedCall) while this object lives, on any
/// thread, wherever their forward is called with gradients enabled. A checkpointed module that another one
/// calls is a part of that one.
class CheckpointedModules {
 public:
  /// The model must not have run yet, because its calls are resolved when it first runs, and must already be
  /// on the device that it runs on. Throws Error (input) as checkpointed_paths does, or if a method of the
  /// model enables autocast, which checkpointed modules would not see. This object must outlive the model's
  /// last call.
  CheckpointedModules(torch::jit::Module& model, const std::vector<std::string>& patterns,
                      c10::Device device);
  ~CheckpointedModules();
  CheckpointedModules(const CheckpointedModules&) = delete;
  CheckpointedModules& operator=(const CheckpointedModules&) = delete;

  const std::vector<std::string>& paths() const { return paths_; }
  /// Returns the paths that have not been called so far.
  std::vector<std::string> uncalled() const;
  /// Returns the last refusal of a checkpointed module, which LibTorch's interpreter hides.
  std::optional<Error> take_refusal();

  /// Disables checkpointing while this object lives.
  class Off {
   public:
    explicit Off(CheckpointedModules& checkpointed);
    ~Off();
    Off(const Off&) = delete;
    Off& operator=(const Off&) = delete;

   private:
    CheckpointedModules& checkpointed_;
  };

 private:
  struct State;
  class Replacement;

  std::vector<std::string> paths_;
  std::shared_ptr<State> state_;
};

}  // namespace offprof

#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/error.h"

namespace offprof {

/// The submodules of a model whose paths match one of `patterns`, in the order in which the model names them:
/// of those that lie in each other the outermost. Only submodules that have a forward count. A pattern is as
/// in file names; `*` goes across dots: `layers.*` is each of the layers.
///
/// Throws Error (input): a pattern that is empty or matches none; the model has no submodules.
std::vector<std::string> segment_paths(const torch::jit::Module& model,
                                       const std::vector<std::string>& patterns);

/// Submodules of a model that run as segments (SegmentRun) while this lives, on any thread, wherever their
/// forward is called with gradients enabled. A segment that another one calls is a part of that.
class Segments {
 public:
  /// The model must not have run yet, and lie on the device that it is to run on already: what it calls is
  /// settled when it first runs. Throws Error (input): see segment_paths; a method of it switches autocast
  /// on, which segments would not see. It must outlive the model's last call.
  Segments(torch::jit::Module& model, const std::vector<std::string>& patterns, c10::Device device);
  ~Segments();
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  const std::vector<std::string>& paths() const { return paths_; }
  /// Those that nothing has called so far.
  std::vector<std::string> uncalled() const;
  /// What a segment last refused: LibTorch's interpreter hides it.
  std::optional<Error> take_refusal();

  /// While it lives, segments run as any module.
  class Off {
   public:
    explicit Off(Segments& segments);
    ~Off();
    Off(const Off&) = delete;
    Off& operator=(const Off&) = delete;

   private:
    Segments& segments_;
  };

 private:
  struct State;
  class Replacement;

  std::vector<std::string> paths_;
  std::shared_ptr<State> state_;
};

}  // namespace offprof

#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/autograd/held_tensor.h"
#include "engine/autograd/step_copies.h"
#include "engine/autograd/step_guide.h"
#include "engine/recompute/random_draws.h"
#include "engine/recompute/recompute.h"
#include "engine/scheduler/command.h"

namespace offprof {

/// Recomputes the saved tensors that a step has dropped for it.
class StepRecompute {
 public:
  /// All arguments must outlive this object. `held`: the saved tensors of the step; `copies`: their copies.
  StepRecompute(const StepGuide& guide, c10::Device device, const std::vector<HeldTensor>& held,
                const StepCopies& copies);

  /// Adds a random draw that an operator of forward is about to make. Does nothing after end_forward.
  void draw(const std::string& op);
  bool watches_draws() const { return draws_.has_value(); }
  /// Returns true at its first call.
  bool end_forward();

  /// Records the contents that the recompute steps read: they must not change from here on.
  void drop(const DropForRecompute& command);
  /// Returns the recomputed storage. Throws c10::Error if a source was modified, or if this step differs from
  /// the recorded one. Passes on exceptions of the operators.
  c10::Storage recompute(const Recompute& command) const;
  /// Forgets a copy that has been recomputed.
  void finish(const Recompute& command) { dropped_.erase(command.copy); }

 private:
  /// A dropped tensor: its recompute steps, and the contents that they read.
  struct Dropped {
    std::shared_ptr<const ExecutableRecomputation> recomputation;
    std::vector<WatchedContent> sources;
  };

  WatchedContent content_of(const RecomputeArgument& argument) const;
  void check_sources(const Recompute& command, const Dropped& dropped) const;
  void check_draws(const Recompute& command, const Dropped& dropped) const;
  c10::Storage storage_of(SavedId tensor) const;

  const StepGuide& guide_;
  const std::vector<HeldTensor>& held_;
  const StepCopies& copies_;
  std::unordered_map<CopyId, Dropped> dropped_;
  std::optional<RandomDraws> draws_;  ///< set if some are drawn again
  bool is_forward_ = true;
};

}  // namespace offprof

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/autograd/residents.h"
#include "engine/devices/device.h"
#include "engine/recompute/random_draws.h"
#include "engine/recompute/recompute.h"
#include "engine/scheduler/scheduler.h"
#include "profiler/recorder/operator_notes.h"
#include "profiler/recorder/recompute_builder.h"

namespace offprof {

/// Recompute steps that observed steps agree on.
class KnownRecomputations {
 public:
  explicit KnownRecomputations(std::vector<FoundRecomputation> found);

  /// Returns the steps by the tensor that they recompute.
  const std::unordered_map<SavedId, std::shared_ptr<const ExecutableRecomputation>>& executable() const {
    return executable_;
  }
  /// Returns the text of the tensor's steps (see text_of); nullptr: there are none.
  const std::string* text_for(SavedId tensor) const;

 private:
  std::unordered_map<SavedId, std::shared_ptr<const ExecutableRecomputation>> executable_;
  std::unordered_map<SavedId, std::string> texts_;
};

/// Checks while a step saves its tensors that they can be recomputed as those of the observed steps. A
/// program may do something else in each step: other operators, other numbers as their arguments, or other
/// random draws. So this compares the operators of the step itself, and keeps the states of its generators.
///
/// Create it on the thread that runs the step, before the step. One at a time on a thread.
class RecomputeGuard {
 public:
  /// `device` must outlive the guard.
  RecomputeGuard(Device& device, std::shared_ptr<const Residents> residents,
                 std::shared_ptr<const KnownRecomputations> known);

  /// Returns true if this step can recompute the content of a tensor that is about to be saved. Call `add`
  /// afterwards, for every saved tensor in the order in which they are saved.
  bool allows(const Recomputation& recomputation, SavedId tensor, const at::Tensor& value,
              const PackRequest& request);
  void add(const at::Tensor& value, const PackRequest& request);

  /// Stops observing: forward has ended.
  void end_forward();
  /// Forgets the operators. Call it when the step is over.
  void end_step();
  /// Returns the generator state before a draw of the step; see RandomDraws.
  const RngState& state_before(std::size_t draw) const;

 private:
  /// Content of a saved tensor that recompute steps may read.
  struct Saved {
    AllocationId storage = 0;
    std::uint32_t version = 0;
    std::optional<WatchedContent> content{};  ///< nullopt: none reads it
  };

  bool is_same_content(SavedId first, const PackRequest& request) const;
  bool is_made_as_known(SavedId tensor, const at::Tensor& value);
  SavedId source_of(const NotedArgument& argument) const;

  Device& device_;
  std::shared_ptr<const Residents> residents_;
  std::shared_ptr<const KnownRecomputations> known_;
  std::unique_ptr<OperatorNotes> notes_;
  std::optional<RandomDraws> draws_;  ///< once the step is over
  std::vector<Saved> saved_;
  std::map<SavedId, bool> verdicts_;  ///< by the first tensor with a content
};

}  // namespace offprof

#pragma once

#include <cstddef>
#include <vector>

#include "simulator/replay/step.h"
#include "traces/model/policy.h"

namespace offprof {

/// Finds the event of a step up to which two policies lead to equal decisions.
class Divergence {
 public:
  /// `step` must outlive it.
  explicit Divergence(const Step& step);

  /// Returns an index in Step::events() such that `a` and `b` lead to exactly the same commands before that
  /// event. Usually it is the first event with different commands. Returns the number of events if no event
  /// distinguishes the policies. Returns 0 for policies of a scheduler other than `offload`, and for policies
  /// that differ in their streams, their caps of host or disk memory, or their disk buffers.
  std::size_t operator()(const Policy& a, const Policy& b) const;

  /// Returns the index of the first unpack, before which prefetch windows do not matter; the number of events
  /// if there is none.
  std::size_t first_unpack() const { return first_unpack_; }

 private:
  void note_same_contents();
  SavedId apart_by_threshold(const Policy& a, const Policy& b) const;
  SavedId apart_by_plan(const Policy& a, const Policy& b) const;
  SavedId apart_by_stash(const Policy& a, const Policy& b) const;
  SavedId no_tensor() const { return static_cast<SavedId>(pack_event_.size()); }
  std::size_t event_of(SavedId tensor) const;

  const Step& step_;
  std::vector<std::size_t> pack_event_;  ///< by saved tensor
  /// By saved tensor: the movable tensor saved before it that shares a copy with it; -1: none.
  std::vector<SavedId> same_content_;
  std::size_t first_unpack_;
};

}  // namespace offprof

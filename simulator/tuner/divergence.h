#pragma once

#include <cstddef>
#include <vector>

#include "simulator/step.h"
#include "traces/policy.h"

namespace offprof {

/// Says up to which event of a step policies decide alike.
class Divergence {
 public:
  /// `step` must outlive it.
  explicit Divergence(const Step& step);

  /// Index in Step::events() of an event before which `a` and `b` lead to the very same commands; mostly it
  /// is the first at which they do not. The number of events where no event tells them apart. Policies
  /// of other schedulers than `offload`, and such as differ in their streams or their cap of host memory, are
  /// told apart at 0.
  std::size_t operator()(const Policy& a, const Policy& b) const;

  /// Index of the event before which prefetch windows do not matter; the number of events where there is
  /// none.
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
  std::vector<SavedId> same_content_;    ///< by saved tensor: the movable one before it that it shares a
                                         ///< copy with; -1: none
  std::size_t first_unpack_;
};

}  // namespace offprof

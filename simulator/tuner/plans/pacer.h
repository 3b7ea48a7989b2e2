#pragma once

#include <cstddef>
#include <vector>

#include "simulator/replay/step.h"
#include "simulator/tuner/plans/plan_search.h"
#include "simulator/tuner/plans/recompute_groups.h"
#include "traces/model/link.h"

namespace offprof {

/// Rule by which a plan is made: see Pacer.
struct Pace {
  std::size_t selection = 0;  ///< 0: versions of all sizes; n: of one size alone
  double speed = 1;           ///< of the link that is assumed, relative to the real one
  Bytes backlog = 0;          ///< most bytes of earlier copies that wait when a version joins them
  Bytes window = 0;           ///< prefetch window

  bool operator==(const Pace&) const = default;
};

/// Makes plans that keep the link busy while tensors are saved. A version moves if, when it is saved, the
/// copies that are not done yet have at most a certain size; so the moved versions are spread evenly over
/// forward. The stash holds as much as is under way. A link that is assumed slower than it is moves less; one
/// that is assumed faster moves more, and compute waits for the real one.
///
/// PyTorch's allocator reuses memory better if the moved storages have one size. So there are plans that move
/// versions of one size only, for the sizes with the most bytes.
class Pacer {
 public:
  /// All arguments must outlive it. There must be at least one version.
  Pacer(const Step& step, const Link& link, const PlanSpace& space);

  /// Returns a coarse grid of all rules. Those of one selection are neighbours.
  std::vector<Pace> grid() const;
  /// Returns rules that differ a little from `pace` in one setting.
  std::vector<Pace> neighbours(const Pace& pace) const;
  PlanSearch::Plan plan(const Pace& pace) const;

 private:
  /// Size of the largest version of the selection.
  Bytes unit(std::size_t selection) const;

  const Link& link_;
  const std::vector<MovableVersion>& versions_;
  std::vector<Nanoseconds> times_;  ///< see keep_times
  std::vector<Nanoseconds> away_;   ///< by version: how long it can be off the device
  std::vector<Bytes> sizes_;        ///< of selections 1 and above
  Bytes largest_ = 0;
};

}  // namespace offprof

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "simulator/replay/step.h"
#include "traces/base/units.h"

namespace offprof {

inline constexpr std::size_t kNoEvent = std::numeric_limits<std::size_t>::max();

/// A content of a storage that may move; the saved tensors that view it share one copy. A plan selects among
/// these. Events are indices in Step::events().
struct MovableVersion {
  std::int64_t storage = 0;
  Bytes bytes = 0;
  std::vector<SavedId> tensors;  ///< in the order in which they are saved
  std::size_t first_pack = kNoEvent;
  /// The last of the first unpacks of its tensors; kNoEvent: some tensor is never unpacked.
  std::size_t last_first_unpack = kNoEvent;
  std::size_t last_release = kNoEvent;  ///< kNoEvent: some tensor is never released
};

/// Returns the movable versions in the order of their first saves.
std::vector<MovableVersion> movable_versions(const Step& step);

/// Returns the sizes of the versions for which `is_wanted(index)` is true, in their order.
template <typename IsWanted>
std::vector<Bytes> sizes_where(const std::vector<MovableVersion>& versions, IsWanted is_wanted) {
  std::vector<Bytes> sizes;
  for (std::size_t v = 0; v < versions.size(); ++v)
    if (is_wanted(v)) sizes.push_back(versions[v].bytes);
  return sizes;
}

/// Returns the sizes of the versions of at least `threshold` bytes, in their order.
std::vector<Bytes> sizes_of(const std::vector<MovableVersion>& versions, Bytes threshold = 0);

/// Returns the distinct sizes of the versions of at least `threshold` bytes, smallest first.
std::vector<Bytes> distinct_sizes(const std::vector<MovableVersion>& versions, Bytes threshold = 0);

Bytes sum_of(const std::vector<Bytes>& sizes);

}  // namespace offprof

#include "validation/grid.h"

#include <algorithm>
#include <cstddef>

namespace offprof {
namespace {

constexpr std::size_t kThresholds = 7;
constexpr std::int64_t kStashCounts[] = {0, 1, 2, 3, 5, 8, 13};
constexpr Bytes kPrefetchWindows[] = {0, kMiB, 64 * kMiB};

/// Returns 0, storage sizes that the step saves in ascending order, and one byte more than the largest.
std::vector<Bytes> thresholds(const Step& step) {
  std::vector<Bytes> sizes;
  for (const PackRequest& request : step.requests())
    if (request.movability == Movability::kMovable) sizes.push_back(request.storage_bytes);
  std::sort(sizes.begin(), sizes.end());
  std::vector<Bytes> chosen = {0};
  for (std::size_t i = 1; i + 1 < kThresholds; ++i)
    chosen.push_back(sizes[i * (sizes.size() - 1) / (kThresholds - 2)]);
  chosen.push_back(sizes.back() + 1);
  return chosen;
}

/// The cross-section takes every 23rd point of the grid. The stride is coprime to the lengths of the
/// axes, so that every value occurs.
constexpr std::size_t kCrossSectionStride = 23;

}  // namespace

std::vector<Policy> validation_grid(const Step& step, GridSize size) {
  std::vector<Policy> grid = {preset_policy("keep"), preset_policy("offload"), preset_policy("trl")};
  std::size_t point = 0;
  for (const Bytes threshold : thresholds(step)) {
    for (const std::int64_t stash : kStashCounts) {
      for (const Bytes prefetch : kPrefetchWindows) {
        if (point++ % kCrossSectionStride != 0 && size == GridSize::kCrossSection) continue;
        Policy policy = preset_policy("offload");
        policy.threshold_bytes = threshold;
        policy.stash_count = stash;
        policy.prefetch_bytes = prefetch;
        grid.push_back(policy);
      }
    }
  }
  return grid;
}

}  // namespace offprof

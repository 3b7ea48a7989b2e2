#include "simulator/tuner/settings/family_search.h"

#include <algorithm>
#include <utility>

namespace offprof {
namespace {

/// Number of parts with equal bytes that thresholds divide the moved bytes into, if not every size can be a
/// threshold.
constexpr std::size_t kFewThresholds = 24;

std::vector<Bytes> few_thresholds(const std::vector<MovableVersion>& versions) {
  std::vector<Bytes> sizes = sizes_of(versions);
  std::sort(sizes.begin(), sizes.end());
  const Bytes total = std::max<Bytes>(sum_of(sizes), 1);  // all may have no bytes
  std::vector<Bytes> chosen = {sizes.front(), sizes.back()};
  Bytes below = 0;
  for (const Bytes bytes : sizes) {
    const auto part = [&](Bytes sum) { return static_cast<std::int64_t>(kFewThresholds) * sum / total; };
    if (part(below + bytes) > part(below)) chosen.push_back(bytes);
    below += bytes;
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

/// Nothing is known about a range until its two corners have been replayed.
std::size_t least_replays(const std::vector<SettingRange>& ranges) {
  return 2 * ranges.size();
}

std::vector<SettingRange> ranges_of(const std::vector<MovableVersion>& versions, const Policy& base,
                                    const std::vector<Bytes>& thresholds) {
  std::vector<SettingRange> ranges;
  for (const Bytes threshold : thresholds) {
    Policy policy = base;
    policy.threshold_bytes = threshold;
    for (SettingRange& range : setting_ranges(policy, sizes_of(versions, threshold)))
      ranges.push_back(std::move(range));
  }
  return ranges;
}

/// Returns 0 (on demand), the size of the largest copy, twice that, and so on, up to all moved bytes.
std::vector<Bytes> coarse_windows(const std::vector<Bytes>& sizes) {
  const Bytes total = sum_of(sizes);
  std::vector<Bytes> windows = {0};
  for (Bytes window = *std::max_element(sizes.begin(), sizes.end()); window < total; window *= 2)
    windows.push_back(window);
  windows.push_back(total);
  return windows;
}

/// Returns 0, 1, 2, 3, 5, 8, ..., up to a stash that never fills.
std::vector<std::int64_t> coarse_stashes(std::size_t copies) {
  std::vector<std::int64_t> stashes = {0};
  const auto most = static_cast<std::int64_t>(copies);
  for (std::int64_t stash = 1, next = 2; stash < most; next += std::exchange(stash, next))
    stashes.push_back(stash);
  stashes.push_back(most);
  return stashes;
}

std::vector<Policy> evenly_sampled(std::vector<Policy> grid, std::size_t most) {
  if (grid.size() <= most) return grid;
  std::vector<Policy> sample;
  for (std::size_t i = 0; i < most; ++i) sample.push_back(std::move(grid[i * grid.size() / most]));
  return sample;
}

}  // namespace

std::vector<Policy> coarse_grid(const std::vector<MovableVersion>& versions, const Policy& base,
                                std::size_t most) {
  std::vector<Policy> grid;
  if (versions.empty()) return grid;
  for (const Bytes threshold : few_thresholds(versions)) {
    const std::vector<Bytes> sizes = sizes_of(versions, threshold);
    Policy policy = base;
    policy.threshold_bytes = threshold;
    for (const std::int64_t stash : coarse_stashes(sizes.size()))
      for (const Bytes window : coarse_windows(sizes))
        grid.push_back(with_setting(policy, {StashUnit::kCopies, stash, window}));
  }
  return evenly_sampled(std::move(grid), most);
}

FamilyRanges family_ranges(const std::vector<MovableVersion>& versions, const Policy& base,
                           std::size_t replays) {
  FamilyRanges family;
  if (versions.empty()) return family;
  const std::vector<Bytes> thresholds = distinct_sizes(versions);
  for (const Bytes threshold : thresholds) family.settings += most_settings(sizes_of(versions, threshold));
  // With a range for each pair of sizes, the number of ranges grows quadratically with the sizes.
  if (thresholds.size() * thresholds.size() <= replays) {
    family.ranges = ranges_of(versions, base, thresholds);
    if (2 * least_replays(family.ranges) <= replays) return family;
  }
  family.is_whole = false;
  family.ranges = ranges_of(versions, base, few_thresholds(versions));
  if (2 * least_replays(family.ranges) > replays)
    std::erase_if(family.ranges, [](const SettingRange& range) { return range.unit == StashUnit::kBytes; });
  return family;
}

}  // namespace offprof

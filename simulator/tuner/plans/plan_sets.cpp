#include "simulator/tuner/plans/plan_sets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "traces/base/check.h"

namespace offprof {

PlanSets::PlanSets(const LeastMemory& least, const std::vector<MovableVersion>& versions)
    : bytes_(sizes_of(versions)), peak_(least.peak) {
  OFFPROF_CHECK(versions.size() <= kMostVersions);
  // By event: versions that begin or stop waiting after it.
  std::vector<Set> turned(least.after_event.size() + 1, 0);
  for (const LeastMemory::Gap& gap : least.gaps)
    for (const std::size_t end : {gap.begin, gap.end}) turned[end] ^= Set{1} << gap.version;
  Set waiting = 0;
  for (std::size_t e = 0; e < least.after_event.size(); ++e) {
    waiting ^= turned[e];
    if (stretches_.empty() || stretches_.back().waiting != waiting) stretches_.push_back({0, waiting});
    stretches_.back().highest = std::max(stretches_.back().highest, least.after_event[e]);
  }
}

Bytes PlanSets::least_peak(Set moved) const {
  Bytes peak = peak_;
  for (const Stretch& stretch : stretches_) {
    Bytes bytes = stretch.highest;
    for (std::size_t v = 0; v < bytes_.size(); ++v)
      if (((stretch.waiting & ~moved) >> v) & 1U) bytes += bytes_[v];
    peak = std::max(peak, bytes);
  }
  return peak;
}

std::vector<PlanSets::Set> PlanSets::in_order_of_likeness(const std::vector<double>& shares) const {
  std::vector<Set> sets((std::size_t{1} << bytes_.size()) - 1);
  std::iota(sets.begin(), sets.end(), 1);
  std::vector<double> unlike(sets.size() + 1, 0);
  for (const Set set : sets)
    for (std::size_t v = 0; v < bytes_.size(); ++v)
      unlike[set] += std::abs(shares[v] - static_cast<double>((set >> v) & 1U));
  std::stable_sort(sets.begin(), sets.end(), [&](Set a, Set b) { return unlike[a] < unlike[b]; });
  return sets;
}

}  // namespace offprof

#include "simulator/tuner/plans/pacer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/tuner/plans/keep_times.h"

namespace offprof {
namespace {

/// Speeds of the grid, from the slowest to the fastest; each is kSpeedRatio times the one before it.
constexpr double kSlowest = 1.0 / 8, kFastest = 6, kSpeedRatio = 1.2;
/// Backlogs and windows of the grid, in units of the largest version.
constexpr Bytes kBacklogs[] = {0, 2, 5};
constexpr Bytes kWindows[] = {1, 3, 8};
/// Ratios of the speeds of neighbours.
constexpr double kNearSpeeds[] = {0.91, 0.95, 0.98, 1.02, 1.05, 1.1};
/// Sizes with a selection of their own.
constexpr std::size_t kMostSizes = 3;

/// Returns the sizes with the most bytes, at most kMostSizes; none if all versions have one size.
std::vector<Bytes> main_sizes(const std::vector<MovableVersion>& versions) {
  std::map<Bytes, Bytes> bytes_of;
  for (const MovableVersion& version : versions) bytes_of[version.bytes] += version.bytes;
  if (bytes_of.size() < 2) return {};
  std::vector<std::pair<Bytes, Bytes>> order;
  for (const auto& [size, bytes] : bytes_of) order.emplace_back(bytes, size);
  std::ranges::sort(order, std::greater());
  std::vector<Bytes> sizes;
  for (std::size_t i = 0; i < std::min(order.size(), kMostSizes); ++i) sizes.push_back(order[i].second);
  return sizes;
}

}  // namespace

Pacer::Pacer(const Step& step, const Link& link, const PlanSpace& space)
    : link_(link),
      versions_(space.versions),
      times_(keep_times(step, link)),
      away_(versions_.size(), 0),
      sizes_(main_sizes(versions_)),
      largest_(distinct_sizes(versions_).back()) {
  for (const LeastMemory::Gap& gap : space.least.gaps)
    away_[gap.version] = std::max(away_[gap.version], times_[gap.end] - times_[gap.begin]);
}

Bytes Pacer::unit(std::size_t selection) const {
  return selection == 0 ? largest_ : sizes_[selection - 1];
}

std::vector<Pace> Pacer::grid() const {
  std::vector<Pace> paces;
  for (std::size_t selection = 0; selection <= sizes_.size(); ++selection)
    for (double speed = kSlowest; speed < kFastest; speed *= kSpeedRatio)
      for (const Bytes backlog : kBacklogs)
        for (const Bytes window : kWindows)
          paces.push_back({selection, speed, backlog * unit(selection), window * unit(selection)});
  return paces;
}

std::vector<Pace> Pacer::neighbours(const Pace& pace) const {
  std::vector<Pace> near;
  for (const double ratio : kNearSpeeds) {
    near.push_back(pace);
    near.back().speed *= ratio;
  }
  for (const Bytes by : {-unit(pace.selection), unit(pace.selection)}) {
    near.push_back(pace);
    near.back().backlog = std::max<Bytes>(0, pace.backlog + by);
    near.push_back(pace);
    near.back().window = std::max<Bytes>(0, pace.window + by);
  }
  return near;
}

/// A version that would be back before it is gone stays.
PlanSearch::Plan Pacer::plan(const Pace& pace) const {
  const Bytes size = unit(pace.selection);
  PlanSearch::Plan plan{PlanSearch::Choice(versions_.size(), 0),
                        {StashUnit::kBytes, pace.backlog + size, pace.window}};
  const auto duration = [&](const LinkDirection& direction, Bytes bytes) {
    return static_cast<double>(direction.duration(bytes)) / pace.speed;
  };
  const double lead = duration(link_.d2h, pace.backlog);
  double free_at = 0;
  for (std::size_t v = 0; v < versions_.size(); ++v) {
    const MovableVersion& version = versions_[v];
    if (pace.selection > 0 && version.bytes != size) continue;
    const double out = duration(link_.d2h, version.bytes), in = duration(link_.h2d, version.bytes);
    const auto saved_at = static_cast<double>(times_[version.first_pack]);
    if (static_cast<double>(away_[v]) < out + in || free_at > saved_at + lead) continue;
    free_at = std::max(free_at, saved_at) + out;
    plan.moved[v] = 1;
  }
  return plan;
}

}  // namespace offprof

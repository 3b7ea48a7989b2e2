#include "traces/model/calibration.h"

#include <algorithm>
#include <numeric>

#include "traces/base/check.h"

namespace offprof {
namespace {

/// Returns the latency of the smallest copies and the bandwidth in a step. Without the latter, computes the
/// bandwidth from the difference between the largest and the smallest copies.
LinkDirection direction_of(const std::vector<CopyTiming>& copies, const MeasuredQuartiles& per_mib,
                           Nanoseconds start_ns) {
  if (copies.empty()) return {};
  const CopyTiming &small = copies.front(), &large = copies.back();
  const Nanoseconds latency = small.duration.median_ns;
  if (per_mib.median_ns > 0) return {1e9 * kMiB / static_cast<double>(per_mib.median_ns), latency, start_ns};
  const auto beyond = static_cast<double>(std::max<Nanoseconds>(large.duration.median_ns - latency, 1));
  return {1e9 * static_cast<double>(large.bytes - small.bytes) / beyond, latency, start_ns};
}

/// Returns the noise-corrected cost per byte: see costs_of.
double per_byte(const MeasuredQuartiles& per_mib) {
  const double noise = per_mib.relative_spread() / 2;
  return std::max(0.0, 1 - noise * noise) * static_cast<double>(per_mib.median_ns) / kMiB;
}

}  // namespace

double MeasuredQuartiles::relative_spread() const {
  return median_ns == 0 ? 0 : static_cast<double>(high_ns - low_ns) / static_cast<double>(median_ns);
}

MeasuredQuartiles summarize_measured(std::vector<Nanoseconds> values) {
  OFFPROF_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t last = values.size() - 1;
  const Nanoseconds median = std::midpoint(values[last / 2], values[values.size() / 2]);
  return {median, values[last / 4], values[last - last / 4]};
}

Nanoseconds EngineCosts::lost_after(Nanoseconds stood_ns) const {
  Standstill before;
  for (const Standstill& next : standstills) {
    if (stood_ns <= next.stood_ns) {
      const double share = static_cast<double>(stood_ns - before.stood_ns) /
                           static_cast<double>(std::max<Nanoseconds>(next.stood_ns - before.stood_ns, 1));
      return before.lost_ns +
             static_cast<Nanoseconds>(share * static_cast<double>(next.lost_ns - before.lost_ns));
    }
    before = next;
  }
  return before.lost_ns;
}

bool are_as_far_apart(Nanoseconds a, Nanoseconds b) {
  constexpr double kFurther = 2.5;
  const auto [near, far] = std::minmax(a, b);
  return near == 0 || static_cast<double>(far) <= kFurther * static_cast<double>(near);
}

EngineCosts costs_of(const Calibration& calibration) {
  EngineCosts costs;
  costs.hook_ns = calibration.hook.median_ns;
  costs.event_ns = calibration.event.median_ns;
  costs.slowdown_ns_per_byte = per_byte(calibration.slowdown_per_mib);
  costs.reload_ns_per_byte = per_byte(calibration.reload_per_mib);
  Nanoseconds most_lost = 0;
  for (const StandstillTiming& timing : calibration.standstills) {
    most_lost = std::max(most_lost, timing.lost.median_ns);
    costs.standstills.push_back({timing.stood_ns, most_lost});
  }
  return costs;
}

namespace {

DiskLink disk_of(const Calibration& calibration) {
  if (calibration.disk_write.empty() || calibration.disk_read.empty()) return {};
  return {direction_of(calibration.disk_write, {}, 0), direction_of(calibration.disk_read, {}, 0)};
}

}  // namespace

Link link_of(const Calibration& calibration) {
  const Nanoseconds start = calibration.start.median_ns;
  return {direction_of(calibration.d2h, calibration.copy_out_per_mib, start),
          direction_of(calibration.h2d, calibration.copy_in_per_mib, start), calibration.command.median_ns,
          false, disk_of(calibration)};
}

}  // namespace offprof

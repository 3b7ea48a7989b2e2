#include "profiler/program_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/replay.h"

namespace offprof {

std::optional<double> fit_to_compute(Program& program, const Calibration& calibration, const Policy& policy,
                                     Nanoseconds compute_ns) {
  const Step step(program, costs_of(calibration));
  const Nanoseconds recorded = step.compute_ns();
  const Nanoseconds costs = *replay(step, policy, link_of(calibration)).metrics.compute_ns - recorded;
  const Nanoseconds wanted = compute_ns - costs;
  if (recorded <= 0 || wanted <= 0) return std::nullopt;
  const double factor = static_cast<double>(wanted) / static_cast<double>(recorded);
  scale_compute(program, factor);
  return factor;
}

Measured reload_cost(const Program& program, const Calibration& calibration,
                     const std::vector<Nanoseconds>& offloaded_extra_ns) {
  const Step step(program, costs_of(calibration));
  const Metrics replayed = replay(step, preset_policy("offload"), link_of(calibration)).metrics;
  const double mib = static_cast<double>(*replayed.h2d_bytes) / kMiB;
  if (mib == 0 || offloaded_extra_ns.empty()) return {};
  std::vector<Nanoseconds> costs;
  const Nanoseconds explained = *replayed.compute_ns - calibration.step.median_ns;
  for (const Nanoseconds extra : offloaded_extra_ns) {
    const Nanoseconds more = std::max<Nanoseconds>(extra - explained, 0);
    costs.push_back(std::llround(static_cast<double>(more) / mib));
  }
  return summarize_measured(std::move(costs));
}

}  // namespace offprof

#include "profiler/recording/measured.h"

#include <algorithm>
#include <string>
#include <vector>

#include "traces/base/check.h"

namespace offprof {
namespace {

Nanoseconds launch_gap_ns(const StepResult& step) {
  return step.busy_ns ? step.step_time_ns - step.exposed_ns - *step.busy_ns : 0;
}

void raise(std::optional<Bytes>& most, std::optional<Bytes> bytes) {
  if (bytes) most = std::max(most.value_or(0), *bytes);
}

void count_memory(Metrics& metrics, const StepResult& step) {
  raise(metrics.device_peak_bytes, step.device_peak_bytes);
  raise(metrics.device_resident_bytes, step.device_resident_bytes);
  if (step.cache_use) {
    raise(metrics.device_allocated_peak_bytes, step.cache_use->allocated_peak_bytes);
    raise(metrics.device_reserved_peak_bytes, step.cache_use->reserved_peak_bytes);
  }
  raise(metrics.host_peak_bytes, step.host_peak_bytes);
  raise(metrics.host_reserved_bytes, step.host_reserved_bytes);
  if (step.disk_peak_bytes > 0 || step.disk_write_bytes > 0 || step.disk_read_bytes > 0) {
    raise(metrics.disk_peak_bytes, step.disk_peak_bytes);
    raise(metrics.disk_write_bytes, step.disk_write_bytes);
    raise(metrics.disk_read_bytes, step.disk_read_bytes);
  }
  raise(metrics.d2h_bytes, step.d2h_bytes);
  raise(metrics.h2d_bytes, step.h2d_bytes);
}

/// Returns the step with the median time.
const StepResult& median_step(std::span<const StepResult> steps) {
  std::vector<const StepResult*> sorted;
  for (const StepResult& step : steps) sorted.push_back(&step);
  std::ranges::stable_sort(sorted, {}, &StepResult::step_time_ns);
  return *sorted[sorted.size() / 2];
}

/// Returns the time of the shown step, and stores the spread over all steps in `metrics` under that key.
template <typename Get>
Nanoseconds time_of(const StepResult& shown, std::span<const StepResult> steps, Metrics& metrics,
                    const std::string& key, Get get) {
  Nanoseconds least = get(shown), most = least;
  for (const StepResult& step : steps) {
    least = std::min(least, get(step));
    most = std::max(most, get(step));
  }
  metrics.spread[key + "_min"] = least;
  metrics.spread[key + "_max"] = most;
  return get(shown);
}

}  // namespace

Metrics summarize(std::span<const StepResult> steps, std::span<const StepResult> untimed) {
  OFFPROF_CHECK(!steps.empty());
  Metrics metrics;
  for (const StepResult& step : steps) count_memory(metrics, step);
  for (const StepResult& step : untimed) count_memory(metrics, step);
  const StepResult& shown = median_step(steps);
  const auto time = [&](const std::string& key, auto get) {
    return time_of(shown, steps, metrics, key, get);
  };
  metrics.step_time_ns = time("step_time_ns", [](const StepResult& step) { return step.step_time_ns; });
  metrics.compute_ns = time("compute_ns", [](const StepResult& step) {
    return step.step_time_ns - step.exposed_ns - launch_gap_ns(step);
  });
  if (steps.front().busy_ns) metrics.launch_gap_ns = time("launch_gap_ns", launch_gap_ns);
  metrics.exposed_ns = time("exposed_ns", [](const StepResult& step) { return step.exposed_ns; });
  metrics.d2h_busy_ns = time("d2h_busy_ns", [](const StepResult& step) { return step.d2h_busy_ns; });
  metrics.h2d_busy_ns = time("h2d_busy_ns", [](const StepResult& step) { return step.h2d_busy_ns; });
  metrics.overlap_ratio = overlap_ratio(*metrics.exposed_ns, *metrics.d2h_busy_ns, *metrics.h2d_busy_ns);
  return metrics;
}

}  // namespace offprof

#include "profiler/measured.h"

#include <algorithm>
#include <string>
#include <vector>

#include "traces/check.h"

namespace offprof {
namespace {

Nanoseconds busy_ns(const StepResult& step, CopyDirection direction) {
  Nanoseconds busy = 0;
  for (const CopyRecord& copy : step.copies)
    if (copy.direction == direction) busy += copy.end_ns - copy.begin_ns;
  return busy;
}

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
  raise(metrics.d2h_bytes, step.d2h_bytes);
  raise(metrics.h2d_bytes, step.h2d_bytes);
}

/// The median; its spread goes into `metrics` under the key's name.
template <typename Get>
Nanoseconds median(std::span<const StepResult> steps, Metrics& metrics, const std::string& key, Get get) {
  std::vector<Nanoseconds> values;
  for (const StepResult& step : steps) values.push_back(get(step));
  std::sort(values.begin(), values.end());
  metrics.spread[key + "_min"] = values.front();
  metrics.spread[key + "_max"] = values.back();
  return values[values.size() / 2];
}

}  // namespace

Metrics summarize(std::span<const StepResult> steps, std::span<const StepResult> untimed) {
  OFFPROF_CHECK(!steps.empty());
  Metrics metrics;
  for (const StepResult& step : steps) count_memory(metrics, step);
  for (const StepResult& step : untimed) count_memory(metrics, step);
  const auto time = [&](const std::string& key, auto get) { return median(steps, metrics, key, get); };
  metrics.step_time_ns = time("step_time_ns", [](const StepResult& step) { return step.step_time_ns; });
  metrics.compute_ns = time("compute_ns", [](const StepResult& step) {
    return step.step_time_ns - step.exposed_ns - launch_gap_ns(step);
  });
  if (steps.front().busy_ns) metrics.launch_gap_ns = time("launch_gap_ns", launch_gap_ns);
  metrics.exposed_ns = time("exposed_ns", [](const StepResult& step) { return step.exposed_ns; });
  metrics.d2h_busy_ns =
      time("d2h_busy_ns", [](const StepResult& step) { return busy_ns(step, CopyDirection::kD2h); });
  metrics.h2d_busy_ns =
      time("h2d_busy_ns", [](const StepResult& step) { return busy_ns(step, CopyDirection::kH2d); });
  metrics.overlap_ratio = overlap_ratio(*metrics.exposed_ns, *metrics.d2h_busy_ns, *metrics.h2d_busy_ns);
  return metrics;
}

}  // namespace offprof

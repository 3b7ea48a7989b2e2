#include "traces/model/tracing.h"

#include <fmt/format.h>

#include "traces/model/metrics.h"

namespace offprof {

std::optional<double> GpuFigures::overlap_ratio() const {
  return offprof::overlap_ratio(exposed_ns, d2h.busy_ns, h2d.busy_ns);
}

double relative_cost(const MeasuredQuartiles& untraced, const MeasuredQuartiles& traced) {
  if (untraced.median_ns == 0) return 0;
  return static_cast<double>(traced.median_ns - untraced.median_ns) / static_cast<double>(untraced.median_ns);
}

std::string losses_text(const Tracing& tracing) {
  const auto plural = [](std::int64_t count) { return count == 1 ? "" : "s"; };
  std::string text =
      fmt::format("{} record{} dropped", tracing.dropped_records, plural(tracing.dropped_records));
  if (tracing.untimed_records > 0) text += fmt::format(", {} without times", tracing.untimed_records);
  if (tracing.unreadable_buffers > 0)
    text += fmt::format(", {} buffer{} unreadable", tracing.unreadable_buffers,
                        plural(tracing.unreadable_buffers));
  return text;
}

std::optional<double> achieved_rate(const Tracing& tracing, LinkFigures GpuFigures::*direction) {
  constexpr double kNanosecondsPerSecond = 1e9;
  double bytes = 0, time_ns = 0;
  for (const GpuFigures& step : tracing.steps) {
    bytes += static_cast<double>((step.*direction).large_bytes);
    time_ns += static_cast<double>((step.*direction).large_copies_ns);
  }
  if (time_ns == 0) return std::nullopt;
  return kNanosecondsPerSecond * bytes / time_ns;
}

}  // namespace offprof

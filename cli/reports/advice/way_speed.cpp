#include "cli/reports/advice/way_speed.h"

#include <fmt/format.h>

namespace offprof {

double seconds_of(const Way& way) {
  return static_cast<double>(*way.metrics().step_time_ns) / 1e9;
}

std::string time_text(const Way& way) {
  return seconds_of(way) < 1 ? format_duration(*way.metrics().step_time_ns)
                             : fmt::format("{:.3f} s", seconds_of(way));
}

std::optional<double> mfu_of(const Trace& plain, double peak_flops, const Way& way) {
  const double flops = plain.step_size.flops;
  if (flops <= 0 || peak_flops <= 0 || !computes_in_bfloat16(plain.program)) return std::nullopt;
  return flops / (seconds_of(way) * peak_flops);
}

std::string speed_text(const Trace& plain, double peak_flops, const Way& way, const std::string& change) {
  const std::string text = time_text(way) + change + rate_beside(step_size(plain), way.metrics());
  const std::optional<double> mfu = mfu_of(plain, peak_flops, way);
  return mfu ? text + fmt::format(", MFU {:.0f}%", 100 * *mfu) : text;
}

}  // namespace offprof

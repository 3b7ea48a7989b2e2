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

std::string speed_text(const Trace& plain, double peak_flops, const Way& way, const std::string& change) {
  const StepSize size = step_size(plain);
  std::string text = time_text(way) + change;
  if (const std::string rate = rate_text(size, seconds_of(way)); !rate.empty()) text += ", " + rate;
  if (size.flops <= 0 || peak_flops <= 0 || !computes_in_bfloat16(plain.program)) return text;
  return text + fmt::format(", MFU {:.0f}%", 100 * size.flops / (seconds_of(way) * peak_flops));
}

}  // namespace offprof

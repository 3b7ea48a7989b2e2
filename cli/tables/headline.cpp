#include "cli/tables/headline.h"

#include <fmt/format.h>

#include "cli/tables/figure_text.h"
#include "traces/base/whole_number.h"

namespace offprof {
namespace {

/// Returns `from to now`, such as `122 to 55.8 GiB`: a unit that both have is named once.
std::string range_text(std::string from, const std::string& to) {
  const auto unit = to.rfind(' ');
  if (unit != std::string::npos && from.ends_with(to.substr(unit)))
    from.resize(from.size() - to.size() + unit);
  return from + " to " + to;
}

/// Returns `peak 122 to 55.8 GiB (-54.3%)`; `peak 55.8 GiB` if the base is equal or unknown.
template <class Format>
std::string part(const char* name, const Format& format, std::optional<double> base,
                 std::optional<double> now) {
  if (!now) return "";
  if (!base || *base == *now) return fmt::format("{} {}", name, format(*now));
  return fmt::format("{} {}{}", name, range_text(format(*base), format(*now)), percent_suffix(*base, *now));
}

}  // namespace

HeadlineFigures headline_figures(const Metrics& metrics) {
  HeadlineFigures figures;
  for (const MetricKey& key : metric_keys()) {
    if (key.name == kPeakKey) figures.peak_bytes = key.get(metrics);
    if (key.name == kStepTimeKey) figures.step_ns = key.get(metrics);
  }
  return figures;
}

std::string headline(const std::optional<HeadlineFigures>& base, const HeadlineFigures& now,
                     Nanoseconds times_unsure_by) {
  const auto bytes = [](double value) { return figure_text(MetricUnit::kBytes, value); };
  const auto time = [&](double value) { return duration_text(to_whole(value), times_unsure_by); };
  const HeadlineFigures from = base.value_or(HeadlineFigures{});
  const std::string peak = part("peak", bytes, from.peak_bytes, now.peak_bytes);
  const std::string step = part("step", time, from.step_ns, now.step_ns);
  return peak + (peak.empty() || step.empty() ? "" : ", ") + step;
}

}  // namespace offprof

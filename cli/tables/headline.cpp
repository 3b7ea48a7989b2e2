#include "cli/tables/headline.h"

#include <fmt/format.h>

#include "cli/tables/figure_text.h"
#include "traces/base/whole_number.h"

namespace offprof {
namespace {

/// Returns `from to now`, such as `122 to 55.8 GiB`: a unit that both have is named once.
std::string from_to(std::string from, const std::string& to) {
  const auto unit = to.rfind(' ');
  if (unit != std::string::npos && from.ends_with(to.substr(unit)))
    from.resize(from.size() - to.size() + unit);
  return from + " to " + to;
}

/// Returns `peak 122 to 55.8 GiB (-54.3%)`; `peak 55.8 GiB` if the base is equal or unknown.
template <class Format>
std::string part(const char* name, const Format& format, std::optional<double> base,
                 std::optional<double> now, const std::string& range = "") {
  if (!now) return "";
  const bool is_alone = !base || *base == *now;
  std::string suffix = is_alone ? "" : percent_suffix(*base, *now);
  if (!range.empty()) suffix = " (" + range + (suffix.empty() ? ")" : "; " + suffix.substr(2));
  return fmt::format("{} {}{}", name, is_alone ? format(*now) : from_to(format(*base), format(*now)), suffix);
}

/// Returns the unit of `1.48 s` with the space before it.
std::string unit_of(const std::string& text) {
  const auto unit = text.rfind(' ');
  return unit == std::string::npos ? "" : text.substr(unit);
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

std::string range_beside(Nanoseconds time, const TimeRange& range) {
  const std::string unit = unit_of(format_duration(time));
  std::string low = format_duration(range.low_ns), high = format_duration(range.high_ns);
  if (unit_of(low) == unit && unit_of(high) == unit) {
    low.resize(low.size() - unit.size());
    high.resize(high.size() - unit.size());
  }
  return low + " to " + high;
}

std::string headline(const std::optional<HeadlineFigures>& base, const HeadlineFigures& now,
                     Nanoseconds times_unsure_by, const std::optional<TimeRange>& range) {
  const auto bytes = [](double value) { return figure_text(MetricUnit::kBytes, value); };
  const auto time = [&](double value) { return duration_text(to_whole(value), times_unsure_by); };
  const HeadlineFigures from = base.value_or(HeadlineFigures{});
  const std::string beside = range && now.step_ns ? range_beside(to_whole(*now.step_ns), *range) : "";
  const std::string peak = part("peak", bytes, from.peak_bytes, now.peak_bytes);
  const std::string step = part("step", time, from.step_ns, now.step_ns, beside);
  return peak + (peak.empty() || step.empty() ? "" : ", ") + step;
}

}  // namespace offprof

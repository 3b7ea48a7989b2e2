#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "traces/base/time_range.h"
#include "traces/model/metrics.h"

namespace offprof {

/// Names of the metrics in a headline.
inline constexpr std::string_view kPeakKey = "device_peak_bytes";
inline constexpr std::string_view kStepTimeKey = "step_time_ns";

/// Figures of a step that a report opens with.
struct HeadlineFigures {
  std::optional<double> peak_bytes;  ///< requested peak of device memory
  std::optional<double> step_ns;
};

HeadlineFigures headline_figures(const Metrics& metrics);

/// Returns the range of a time that stands before it: `1.35 to 1.62` beside `1.48 s`. Units are named if one
/// of them is not that of the time: `950 ms to 1.62 s`.
std::string range_beside(Nanoseconds time, const TimeRange& range);

/// Returns the first line of a report: `peak 122 to 55.8 GiB (-54.3%), step 1.25 to 1.64 s (+31.2%)`. Without
/// `base`: `peak 55.8 GiB, step 1.64 s`. Leaves out a figure that `now` lacks. Digits of the times that are
/// not certain are left out (see duration_text). The range of the time, if there is one, stands beside it:
/// `step 1.25 to 1.64 s (1.50 to 1.80; +31.2%)`.
std::string headline(const std::optional<HeadlineFigures>& base, const HeadlineFigures& now,
                     Nanoseconds times_unsure_by = 0, const std::optional<TimeRange>& range = {});

}  // namespace offprof

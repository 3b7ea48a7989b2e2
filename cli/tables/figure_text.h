#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/terminal.h"
#include "traces/analysis/diff.h"
#include "traces/base/time_range.h"
#include "traces/base/units.h"
#include "traces/model/metrics.h"
#include "traces/model/trace.h"

namespace offprof {

/// Printed beside times of a run on a virtual GPU, or of its simulation.
inline constexpr const char* kTimesAreModelled = "modelled, not measured: there was no GPU";

/// Begin of the line that explains the mark `~` in a table: the name of what is compared with follows.
inline constexpr const char* kAlikeLegend = "~: the model cannot tell which is faster, this or ";

/// Returns the line with kTimesAreModelled that `run` prints below its table; empty if `modelled` is false.
/// If `has_ranges`, a second line says what the range beside a step time is.
std::string times_line(bool modelled, const Page& page, bool has_ranges = false);

/// Returns lines that name the parts of the step that save nothing in forward and run again in backward, and
/// are simulated so: modules with activation checkpointing (`--checkpoint`) and layer slices (`--slices`).
/// Empty if there are none.
std::string reruns_text(const RunSettings& settings, const Page& page);

/// Returns the name of a metric for text reports: `stall time` for `exposed_ns`, the JSON key for all others.
std::string metric_text(std::string_view key);

/// Formats a figure for humans; `-` if it is absent.
std::string figure_text(MetricUnit unit, std::optional<double> value);

/// Formats a duration with an uncertainty of `unsure_by`: rounds it to the largest power of ten that is not
/// above `unsure_by`, and marks it with `~`. Example: 12.3 ms with an uncertainty of 3 ms becomes `~12 ms`.
/// Prints all digits if `unsure_by` is 0 or the duration is 0.
std::string duration_text(Nanoseconds duration, Nanoseconds unsure_by);

nlohmann::ordered_json to_json(const TimeRange& range);

/// Returns `54.1 GB/s to host, 55.1 GB/s to device, 96.3 GB/s both at once`; with `shared` for a shared link.
std::string link_text(const Link& link);

/// Formats a difference: `+1.50 MiB`, `-3.10 ms`, `+0.020`, `0`.
std::string difference_text(MetricUnit unit, double difference);

/// Returns a part as a percentage of the whole: `38.5%`; `-` if there is no whole.
std::string share_text(Bytes part, Bytes whole);

/// Returns ` (+3.2%)`, or an empty string if both values are equal or the base is 0.
std::string percent_suffix(double base, double now);

/// Returns a figure as JSON: bytes and nanoseconds as integers, null if it is absent.
nlohmann::ordered_json figure_to_json(MetricUnit unit, std::optional<double> value);

nlohmann::ordered_json ops_to_json(const std::vector<OpDifference>& ops);

/// Returns `1 tensor` or `2 tensors`.
std::string counted(std::int64_t count, std::string_view thing);

}  // namespace offprof

#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "traces/diff.h"
#include "traces/metrics.h"
#include "traces/trace.h"
#include "traces/units.h"

namespace offprof {

/// Beside times of a run on a virtual GPU, or of its simulation.
inline constexpr const char* kTimesAreModelled = "modelled, not measured: there was no GPU";

/// A line that says so, as `run` has it under its table; empty where `modelled` is false.
std::string times_line(bool modelled, const Page& page);

/// Lines that say which parts of a step were recorded as run again in backward, its segments or shards, and
/// so are simulated; empty where there are none.
std::string reruns_text(const RunSettings& settings, const Page& page);

/// A figure for a person, `-` where it is absent.
std::string figure_text(MetricUnit unit, std::optional<double> value);

/// A duration of which only so much is known as `unsure_by` leaves: rounded to the largest power of ten not
/// above it, and marked, as `~12 ms` of 12.3 ms that are unsure by 3 ms. All digits where that is 0; nothing
/// is nothing.
std::string duration_text(Nanoseconds duration, Nanoseconds unsure_by);

/// `+1.50 MiB`, `-3.10 ms`, `+0.020`, `0`.
std::string difference_text(MetricUnit unit, double difference);

/// ` (+3.2%)`; nothing where nothing changed, or where the base is 0.
std::string percent_suffix(double base, double now);

/// A figure as JSON has it: bytes and nanoseconds as integers, null where it is absent.
nlohmann::ordered_json figure_to_json(MetricUnit unit, std::optional<double> value);

nlohmann::ordered_json ops_to_json(const std::vector<OpDifference>& ops);

}  // namespace offprof

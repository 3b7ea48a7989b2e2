#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/figures.h"

namespace offprof {

/// Limit on one figure: `device_peak_bytes<=+0%`, `step_time_ns<=+10%`, `d2h_bytes<=+64MiB`,
/// `step_time_ns<=+3sd`, `device_peak_bytes<=8GiB`, `overlap_ratio>=0.5`.
struct Limit {
  enum class Side { kAtMost, kAtLeast };
  enum class Form {
    kPercent,     ///< percent of the baseline's value, added to it
    kAmount,      ///< added to the baseline's value
    kDeviations,  ///< standard deviations over the runs of the baseline, added to its value
    kAbsolute,    ///< independent of the baseline
  };

  std::string key;
  Side side = Side::kAtMost;
  Form form = Form::kPercent;
  double value = 0;
  std::string text{};  ///< text after the key: `<=+10%`

  bool needs_baseline() const { return form != Form::kAbsolute; }
  /// Returns the highest or lowest value that the figure may have. `baseline` is ignored if needs_baseline()
  /// is false, and `deviation`, the standard deviation, except by kDeviations.
  double bound(double baseline, double deviation = 0) const;
};

/// Number of runs that a baseline must have before its standard deviation counts. A figure of one more run of
/// the same thing exceeds the mean of five runs by three of their deviations in 1 of 38 cases, of ten runs in
/// 1 of 106 (Student's t for a prediction).
inline constexpr std::size_t kLeastRunsForDeviation = 5;

/// The standard deviation counts as at least this share of the mean, so that runs that happen to be alike do
/// not make a limit that the next one exceeds.
inline constexpr double kLeastDeviation = 0.01;

/// Parses one limit. The key is one of metric_keys(), optionally followed by `_min` or `_max` (the spread
/// over the measured steps). A value with a sign is relative to the baseline, a value without a sign is
/// absolute. Only times have deviations. Throws Error (input) that lists the accepted forms.
Limit parse_limit(const std::string& given);

/// Returns the limits to check if the user names none. Peaks of device and host memory and copied bytes are
/// exact, so they must not grow at all. Times are noisy, so a step may take 25 % longer or, if the baseline
/// has `runs` enough, 3 standard deviations.
std::vector<Limit> default_limits(std::size_t runs = 1);

/// One row of a gate's verdict.
struct Check {
  std::string key;  ///< a figure, or a property that must be the same: `model`, `inputs`, ...
  std::optional<MetricUnit> unit{};
  std::optional<double> baseline{}, value{}, bound{};
  std::string baseline_text{}, value_text{};  ///< for a property that must be the same
  std::string limit{};                        ///< `<=+10%`, or `same`
  bool ok = false;
  std::string why{};  ///< reason why a figure could not be checked; `ok` is then false
};

struct GateResult {
  std::vector<Check> checks;
  std::vector<std::string> notes;  ///< skipped checks, and differences that do no harm
  bool ok = false;                 ///< true if every check is ok
};

struct GateOptions {
  std::vector<Limit> limits;  ///< empty: those of default_limits() that both sides have figures for
  /// Runs of different models, inputs, losses, optimizers, devices or versions of LibTorch may be compared.
  bool allow_different = false;
  /// Limits may be on times from a GPU tracer that lost some of its records.
  bool allow_lost_records = false;
};

/// Checks `now` against `base`, which is empty if all limits are absolute.
///
/// The runs must have the same model (by name or by content), inputs, loss and optimizer, otherwise the
/// figures mean nothing; each of these is a check of its own. A baseline of another device or another version
/// of LibTorch is refused. The baseline's value of a time is the mean over its runs. The policy may differ,
/// because it is the subject of tuning, and so may the allocator's settings. The machine and the kernel times
/// may differ, too, but then the default limit on time is skipped. It is also skipped between figures of
/// different sources (a simulation, a measurement, a virtual GPU). The notes list all such differences.
///
/// Throws Error (input) for such a baseline, if nothing is left to check, if a limit needs a baseline or more
/// runs of it than there are, if a limit compares times of different sources, or if a
/// limit is on a figure from GPU records of which the tracer lost some.
GateResult check_gate(const StepSummary& base, const StepSummary& now, const GateOptions& options);

}  // namespace offprof

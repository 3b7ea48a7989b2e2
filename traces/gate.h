#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/figures.h"

namespace offprof {

/// A bound on one figure: `device_peak_bytes<=+0%`, `step_time_ns<=+10%`, `d2h_bytes<=+64MiB`,
/// `device_peak_bytes<=8GiB`, `overlap_ratio>=0.5`.
struct Limit {
  enum class Side { kAtMost, kAtLeast };
  enum class Form {
    kPercent,   ///< of the baseline's value, added to it
    kAmount,    ///< added to the baseline's value
    kAbsolute,  ///< whatever the baseline
  };

  std::string key;
  Side side = Side::kAtMost;
  Form form = Form::kPercent;
  double value = 0;
  std::string text{};  ///< what stands behind the key: `<=+10%`

  bool needs_baseline() const { return form != Form::kAbsolute; }
  /// The bound itself: what the figure may be at most, or must be at least. `baseline` is not read where
  /// needs_baseline() is false.
  double bound(double baseline) const;
};

/// Reads one limit. The key is one of metric_keys(), or one of them with `_min` or `_max` (the spread over
/// measured steps). A sign means relative to the baseline; none means absolute. Throws Error (input) that
/// says what is accepted.
Limit parse_limit(const std::string& given);

/// What is checked where nobody says: peaks of device and host memory and copied bytes do not grow at all,
/// for they are exact; a step may take 25 % longer, for times are noisy.
std::vector<Limit> default_limits();

/// One row of a gate's verdict.
struct Check {
  std::string key;  ///< a figure, or something that must be the same: `model`, `inputs`, ...
  std::optional<MetricUnit> unit{};
  std::optional<double> baseline{}, value{}, bound{};
  std::string baseline_text{}, value_text{};  ///< of what must be the same
  std::string limit{};                        ///< `<=+10%`, or `same`
  bool ok = false;
  std::string why{};  ///< why a figure could not be checked, so that `ok` is false
};

struct Verdict {
  std::vector<Check> checks;
  std::vector<std::string> notes;  ///< what was not checked, or differs without harm
  bool ok = false;                 ///< every check is
};

struct GateOptions {
  std::vector<Limit> limits;  ///< empty: default_limits(), as far as both sides have them
  bool allow_different =
      false;  ///< runs of different models, inputs, losses, optimizers or devices may be compared
  bool allow_lost_records = false;  ///< limits may be on times of a GPU's tracer that lost some of them
};

/// Holds `now` against `base`. What ran must be the same, or figures mean nothing: model (by name or by
/// content), inputs, loss, optimizer and device are checks of their own. A policy may differ, it is what one
/// tunes, and so may the allocator's settings; so may a machine or the kernel times, but then the default
/// limit on time is left out, as it is between figures of different sources (a simulation, a measurement, a
/// virtual GPU). All of this is noted. Throws Error (input): nothing is left to check, or a limit asks for
/// times of different sources to be held against each other, or is on a figure that comes from a GPU's
/// records, of which the tracer lost some.
Verdict check_gate(const Figures& base, const Figures& now, const GateOptions& options);

}  // namespace offprof

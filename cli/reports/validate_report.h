#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "simulator/steps/accuracy.h"
#include "traces/model/metrics.h"
#include "traces/model/policy.h"

namespace offprof {

/// Largest errors and smallest rank correlation that `offprof validate` accepts.
struct ValidationBounds {
  double mean_error = 0.03, p95_error = 0.08;
  double kendall_tau = 0.95;
};

/// One setting with its prediction and its measurement.
struct ValidatedSetting {
  Policy policy;
  Metrics predicted;
  Metrics measured;
  TimedSetting times;                ///< with the time predicted from the trace alone
  TimedSetting adjusted;             ///< with the machine's drift removed, if there is a drift
  bool sets_drift = false;           ///< the drift is computed from this setting, so its time is not judged
  std::string gradients;             ///< as in Trace
  std::vector<std::string> inexact;  ///< keys of memory and copied bytes that differ, and `commands`
};

/// One setting that was predicted to fit into the device's memory, but did not.
struct RefusedSetting {
  Policy policy;
  Metrics predicted;
  std::string why;  ///< `out of device memory: 1.00 GiB asked for, 3.00 GiB live`
};

/// Result of comparing a figure with its bound. kHiddenByNoise: the figure is beyond the bound, but without
/// noise it might be within.
enum class BoundResult { kWithin, kHiddenByNoise, kBeyond, kNothingToRank };

/// Overall result. kHold: memory is right, gradients are right and every bound is met. kCannotTell: noise
/// hides a bound, or the machine changed, or the device had no memory for a setting, and nothing else is
/// wrong.
enum class Outcome { kHold, kCannotTell, kDoNotHold };

/// Result of `offprof validate`.
struct ValidationReport {
  std::string model;
  std::string trace;
  std::string device;
  int rounds = 0;
  ValidationBounds bounds;
  std::vector<ValidatedSetting> settings;
  std::vector<RefusedSetting> refused;  ///< not measured, and not included in any figure
  /// Relative increase of the time of a step with nothing offloaded over the trace's time; 0.01 is one
  /// percent. nullopt: the drift is not determined.
  std::optional<double> drift;
  /// The drift according to the calibrations of the trace and of the runs.
  std::optional<double> recalibrated_drift;
  /// Accuracy of predictions from the trace alone, without the setting that sets the drift.
  Accuracy accuracy;
  /// Accuracy with the drift applied to all compute. This one is compared with the bounds.
  Accuracy adjusted;
  /// See ComparisonResult.
  int repeated_visits = 0, displaced_visits = 0;
  std::size_t left_out = 0;           ///< settings that do not fit into the device's memory
  std::vector<std::string> notes;     ///< deviations from the trace's settings, one sentence each
  std::vector<std::string> warnings;  ///< causes of wrong predictions other than the model, one sentence each
  bool times_are_modelled = false;
  bool runs_one_by_one = false;  ///< each setting ran in a process of its own

  /// Returns false if the measured times come from different processes, which differ by more than settings
  /// do: then no figure of the step time means anything, and none is reported.
  bool compares_times() const { return !runs_one_by_one || times_are_modelled; }
  /// Returns true if the cores were displaced in too many visits, so that the measurements do not match the
  /// conditions of the trace.
  bool machine_is_another() const;
  BoundResult mean_verdict() const;
  BoundResult p95_verdict() const;
  BoundResult ranking_verdict() const;
  bool memory_is_exact() const;
  /// Returns true if memory is exact but for figures that may differ between processes on a real GPU: see
  /// may_differ_by_addresses.
  bool memory_is_right() const;
  bool gradients_are_right() const;
  Outcome outcome() const;
};

nlohmann::ordered_json to_json(const ValidationReport& report);
std::string to_text(const ValidationReport& report, const Page& page);

}  // namespace offprof

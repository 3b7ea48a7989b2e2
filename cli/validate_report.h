#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "simulator/accuracy.h"
#include "traces/metrics.h"
#include "traces/policy.h"

namespace offprof {

/// What `offprof validate` lets pass.
struct ValidationBounds {
  double mean_error = 0.03, p95_error = 0.08;
  double kendall_tau = 0.95;
};

/// One setting, predicted and run.
struct ValidatedSetting {
  Policy policy;
  Metrics predicted;
  Metrics measured;
  TimedSetting times;                ///< as the trace alone predicts it
  TimedSetting adjusted;             ///< with the machine's drift taken out, where there is one
  bool sets_drift = false;           ///< the drift goes by it, so its time is not judged
  std::string gradients;             ///< as in Trace
  std::vector<std::string> inexact;  ///< keys of memory and copied bytes that differ, `commands`
};

/// One setting that was predicted to fit into the device's memory, and for which there was not enough.
struct RefusedSetting {
  Policy policy;
  Metrics predicted;
  std::string why;  ///< `out of device memory: 1.00 GiB asked for, 3.00 GiB live`
};

/// A bound held against what was found. Hidden by noise: beyond the bound, but without the noise it might be
/// within.
enum class Verdict { kWithin, kHiddenByNoise, kBeyond, kNothingToRank };

/// All of it: whether memory is exact, gradients are right and every bound is kept; or whether it cannot be
/// told, because the noise hides one of the bounds, or the machine is another, or the device had no memory
/// for a setting, and nothing else is wrong.
enum class Outcome { kHold, kCannotTell, kDoNotHold };

/// What `offprof validate` found.
struct ValidationReport {
  std::string model;
  std::string trace;
  std::string device;
  int rounds = 0;
  ValidationBounds bounds;
  std::vector<ValidatedSetting> settings;
  std::vector<RefusedSetting> refused;  ///< not measured, and no part of any figure
  /// How much longer a step with nothing offloaded takes than the trace says, 0.01 being one percent.
  /// nullopt: that is not told apart.
  std::optional<double> drift;
  std::optional<double> recalibrated_drift;  ///< the same by the calibrations of the trace and of the runs
  Accuracy accuracy;  ///< of what the trace alone predicts, without the setting that sets the drift
  Accuracy adjusted;  ///< likewise with the drift in all compute: what is held against the bounds
  /// See ComparisonResult.
  int repeated_visits = 0, displaced_visits = 0;
  std::size_t left_out = 0;           ///< settings that do not fit into the device's memory
  std::vector<std::string> notes;     ///< what was done otherwise than the trace says, a sentence each
  std::vector<std::string> warnings;  ///< what else than the model may make predictions wrong
  bool times_are_modelled = false;

  /// Of too many visits the cores were elsewhere: what was measured is not what the trace is of.
  bool machine_is_another() const;
  Verdict mean_verdict() const;
  Verdict p95_verdict() const;
  Verdict ranking_verdict() const;
  bool memory_is_exact() const;
  bool gradients_are_right() const;
  Outcome outcome() const;
};

nlohmann::ordered_json to_json(const ValidationReport& report);
std::string to_text(const ValidationReport& report, const Page& page);

}  // namespace offprof

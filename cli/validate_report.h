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
  TimedSetting adjusted;             ///< with the machine's drift taken out
  std::string gradients;             ///< as in Trace
  std::vector<std::string> inexact;  ///< keys of memory and copied bytes that differ, `commands`
};

/// A bound held against what was found. What exceeds it by less than the noise says nothing either way.
enum class Verdict { kWithin, kHiddenByNoise, kBeyond };

/// What `offprof validate` found.
struct ValidationReport {
  std::string model;
  std::string trace;
  std::string device;
  int rounds = 0;
  ValidationBounds bounds;
  std::vector<ValidatedSetting> settings;
  /// How much slower the machine computes than when the trace was recorded, 0.01 being one percent: by steps
  /// with nothing offloaded.
  double drift = 0;
  Accuracy accuracy;  ///< of what the trace alone predicts
  Accuracy adjusted;  ///< with the drift taken out of compute: what is held against the bounds
  bool times_are_modelled = false;

  Verdict mean_verdict() const;
  Verdict p95_verdict() const;
  Verdict ranking_verdict() const;
  bool memory_is_exact() const;
  bool gradients_are_right() const;
  bool ok() const;
};

nlohmann::ordered_json to_json(const ValidationReport& report);
std::string to_text(const ValidationReport& report, const Page& page);

}  // namespace offprof

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// One setting's step time: predicted, and measured several times.
struct TimedSetting {
  Nanoseconds predicted_ns = 0;
  std::vector<Nanoseconds> measured_ns;  ///< by round; at least one
};

/// The middle one, or of two the mean. `values` is not empty.
Nanoseconds median_of(std::vector<Nanoseconds> values);

/// (predicted - measured) / measured, measured being the median over rounds; 0.01 is one percent.
double relative_error(const TimedSetting& setting);

/// What two measurements of the same setting differ by: |median of even rounds - median of odd rounds| over
/// the median of all; nullopt where there is one round only.
std::optional<double> noise_of(const TimedSetting& setting);

/// How well step times are predicted. Errors are relative; 0.01 is one percent.
struct Accuracy {
  double mean_error = 0, p95_error = 0, max_error = 0;  ///< of magnitudes
  double bias = 0;                                      ///< mean with the sign: above 0, predicted too slow
  std::optional<double> mean_noise, p95_noise;          ///< noise_of the settings; nullopt: one round
  /// Kendall's tau of the ranking: of the pairs of settings whose measured times differ by more than
  /// p95_noise, the share that is predicted in the same order less the share in the other (M. G. Kendall, "A
  /// new measure of rank correlation", Biometrika 30, 1938). nullopt: there is no such pair.
  std::optional<double> kendall_tau;
  std::size_t ranked_pairs = 0;
};

/// `settings` is not empty.
Accuracy accuracy_of(std::span<const TimedSetting> settings);

}  // namespace offprof

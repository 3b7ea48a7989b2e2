#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// The predicted step time of one setting, and its measured step times.
struct TimedSetting {
  Nanoseconds predicted_ns = 0;
  std::vector<Nanoseconds> measured_ns;  ///< in the order of measurement; at least one
};

/// Returns (predicted - measured) / measured, where measured is the median; 0.01 is one percent.
double relative_error(const TimedSetting& setting);

/// Returns the relative difference between two measurements of one setting: |median of the even times -
/// median of the odd times| over the median of all times. Returns nullopt if there is only one time.
std::optional<double> noise_of(const TimedSetting& setting);

/// Interval that holds the noise-free value of a figure with a confidence of 95 %.
struct Range {
  double low = 0, high = 0;
  bool operator==(const Range&) const = default;
};

/// Accuracy of predicted step times. Errors are relative; 0.01 is one percent.
///
/// The ranges are basic bootstrap intervals (A. C. Davison, D. V. Hinkley, "Bootstrap methods and their
/// application", 1997, section 5.2.1). The rounds are resampled with replacement, with the same draw for all
/// settings. The difference between a resampled figure and the computed figure estimates the difference
/// between the computed figure and the true one. Noise increases the magnitude of errors. A range is
/// corrected for that, so it may lie below its figure. A range is nullopt if there is only one round, because
/// then the noise is not known.
struct Accuracy {
  double mean_error = 0, p95_error = 0, max_error = 0;  ///< of the errors' magnitudes
  double bias = 0;                                      ///< signed mean error; above 0: predicted too slow
  std::optional<double> mean_noise, p95_noise;          ///< noise_of over the settings; nullopt: one round
  /// Kendall's tau of the ranking: over the ranked pairs of settings, the share whose predicted order equals
  /// the measured order, minus the share whose predicted order is the opposite (M. G. Kendall, "A new measure
  /// of rank correlation", Biometrika 30, 1938). docs/results/validation.md, "Ranked pairs", defines which
  /// pairs are ranked. nullopt: there is no such pair.
  std::optional<double> kendall_tau;
  std::size_t ranked_pairs = 0;
  std::optional<Range> mean_range, p95_range, tau_range;
};

/// Computes the accuracy of `settings`, which must not be empty. There is at least one round, and every one
/// of the `rounds` measured each setting equally often. `reference` is the setting whose measured times were
/// used to scale all predictions, so its noise is also theirs; nullptr if there is none. The reference itself
/// is not judged.
Accuracy accuracy_of(std::span<const TimedSetting> settings, std::size_t rounds,
                     const TimedSetting* reference = nullptr);

}  // namespace offprof

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
  std::vector<Nanoseconds> measured_ns;  ///< in the order in which they were measured; at least one
};

/// (predicted - measured) / measured, measured being the median; 0.01 is one percent.
double relative_error(const TimedSetting& setting);

/// What two measurements of the same setting differ by: |median of the even times - median of the odd ones|
/// over the median of all; nullopt where there is one only.
std::optional<double> noise_of(const TimedSetting& setting);

/// Where a figure would lie without noise, with a confidence of 95 %.
struct Range {
  double low = 0, high = 0;
  bool operator==(const Range&) const = default;
};

/// How well step times are predicted. Errors are relative; 0.01 is one percent.
///
/// The ranges are basic bootstrap intervals (A. C. Davison, D. V. Hinkley, "Bootstrap methods and their
/// application", 1997, section 5.2.1): the rounds are drawn anew, with replacement and the same ones for all
/// settings, and what a figure then differs by from the one at hand is what that may differ by from the true
/// one. Noise adds to the magnitude of errors; a range has that taken out, so it may lie below its figure.
/// nullopt: there is one round only, and so nothing is known of noise.
struct Accuracy {
  double mean_error = 0, p95_error = 0, max_error = 0;  ///< of magnitudes
  double bias = 0;                                      ///< mean with the sign: above 0, predicted too slow
  std::optional<double> mean_noise, p95_noise;          ///< noise_of the settings; nullopt: one round
  /// Kendall's tau of the ranking: of the ranked pairs of settings the share that is predicted in the same
  /// order as measured, less the share in the other (M. G. Kendall, "A new measure of rank correlation",
  /// Biometrika 30, 1938). docs/validation.md, "Ranked pairs", defines which pairs are ranked.
  /// nullopt: there is no such pair.
  std::optional<double> kendall_tau;
  std::size_t ranked_pairs = 0;
  std::optional<Range> mean_range, p95_range, tau_range;
};

/// `settings` is not empty. Each of the `rounds`, at least one, measured each setting as often as any other
/// round did. `reference`: the setting by whose measured times all predictions were scaled, so that its noise
/// is theirs too; nullptr: there is none. It is not judged itself.
Accuracy accuracy_of(std::span<const TimedSetting> settings, std::size_t rounds,
                     const TimedSetting* reference = nullptr);

}  // namespace offprof

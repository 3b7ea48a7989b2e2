#include "simulator/accuracy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "traces/calibration.h"
#include "traces/check.h"

namespace offprof {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The least value that 95 % of them do not exceed.
double p95_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() * 95 + 99) / 100 - 1];
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

/// How two settings are ordered: -1, 0, 1.
std::int64_t order_of(Nanoseconds a, Nanoseconds b) {
  return a > b ? 1 : a < b ? -1 : 0;
}

void add_noise(Accuracy& accuracy, std::span<const TimedSetting> settings) {
  std::vector<double> noises;
  for (const TimedSetting& setting : settings)
    if (const auto noise = noise_of(setting)) noises.push_back(*noise);
  if (noises.empty()) return;
  accuracy.mean_noise = mean_of(noises);
  accuracy.p95_noise = p95_of(noises);
}

void add_ranking(Accuracy& accuracy, std::span<const TimedSetting> settings) {
  std::vector<Nanoseconds> measured;
  for (const TimedSetting& setting : settings) measured.push_back(median_of(setting.measured_ns));
  std::int64_t agreement = 0;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    for (std::size_t j = i + 1; j < settings.size(); ++j) {
      const auto difference = static_cast<double>(std::abs(measured[i] - measured[j]));
      const auto shorter = static_cast<double>(std::min(measured[i], measured[j]));
      if (difference <= accuracy.p95_noise.value_or(0) * shorter) continue;
      ++accuracy.ranked_pairs;
      agreement +=
          order_of(measured[i], measured[j]) * order_of(settings[i].predicted_ns, settings[j].predicted_ns);
    }
  }
  if (accuracy.ranked_pairs > 0)
    accuracy.kendall_tau = static_cast<double>(agreement) / static_cast<double>(accuracy.ranked_pairs);
}

}  // namespace

Nanoseconds median_of(std::vector<Nanoseconds> values) {
  return summarize_measured(std::move(values)).median_ns;
}

double relative_error(const TimedSetting& setting) {
  const auto measured = static_cast<double>(median_of(setting.measured_ns));
  return (static_cast<double>(setting.predicted_ns) - measured) / measured;
}

std::optional<double> noise_of(const TimedSetting& setting) {
  if (setting.measured_ns.size() < 2) return std::nullopt;
  std::vector<Nanoseconds> halves[2];
  for (std::size_t round = 0; round < setting.measured_ns.size(); ++round)
    halves[round % 2].push_back(setting.measured_ns[round]);
  const auto difference = static_cast<double>(median_of(halves[0]) - median_of(halves[1]));
  return std::abs(difference) / static_cast<double>(median_of(setting.measured_ns));
}

Accuracy accuracy_of(std::span<const TimedSetting> settings) {
  OFFPROF_CHECK(!settings.empty());
  std::vector<double> errors;
  for (const TimedSetting& setting : settings) errors.push_back(relative_error(setting));
  const std::vector<double> sizes = magnitudes(errors);
  Accuracy accuracy;
  accuracy.mean_error = mean_of(sizes);
  accuracy.p95_error = p95_of(sizes);
  accuracy.max_error = *std::max_element(sizes.begin(), sizes.end());
  accuracy.bias = mean_of(errors);
  add_noise(accuracy, settings);
  add_ranking(accuracy, settings);
  return accuracy;
}

}  // namespace offprof

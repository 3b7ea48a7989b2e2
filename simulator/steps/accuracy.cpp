#include "simulator/steps/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "traces/base/check.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

/// Enough for a range that is accurate to about a tenth of its width.
constexpr std::size_t kResamples = 1000;
/// Share of the resampled figures below a range, and share above it.
constexpr double kTail = 0.025;

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Returns the least value that at least 95 % of the values do not exceed.
double p95_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() * 95 + 99) / 100 - 1];
}

/// Returns 0 for equal times, even if both are 0.
double error_of(double predicted, double measured) {
  return predicted == measured ? 0 : (predicted - measured) / measured;
}

/// Returns the order of two settings: -1, 0 or 1.
std::int64_t order_of(double a, double b) {
  return a > b ? 1 : a < b ? -1 : 0;
}

/// Predicted and measured time of each setting, as they are or with resampled rounds.
struct Sample {
  std::vector<double> predicted, measured;

  std::vector<double> errors() const {
    std::vector<double> errors;
    for (std::size_t i = 0; i < measured.size(); ++i) errors.push_back(error_of(predicted[i], measured[i]));
    return errors;
  }
  std::vector<double> error_sizes() const {
    std::vector<double> sizes = errors();
    for (double& size : sizes) size = std::abs(size);
    return sizes;
  }
};

/// Returns the median over some of the rounds.
double median_over(const TimedSetting& setting, const std::vector<std::size_t>& rounds) {
  OFFPROF_CHECK(setting.measured_ns.size() % rounds.size() == 0);
  const std::size_t in_round = setting.measured_ns.size() / rounds.size();
  std::vector<Nanoseconds> times;
  for (const std::size_t round : rounds) {
    const auto first = setting.measured_ns.begin() + static_cast<std::ptrdiff_t>(round * in_round);
    times.insert(times.end(), first, first + static_cast<std::ptrdiff_t>(in_round));
  }
  return static_cast<double>(median_of(std::move(times)));
}

Sample sample_of(std::span<const TimedSetting> settings, const TimedSetting* reference,
                 const std::vector<std::size_t>& rounds) {
  const double scale = reference == nullptr ? 1
                                            : median_over(*reference, rounds) /
                                                  static_cast<double>(median_of(reference->measured_ns));
  Sample sample;
  for (const TimedSetting& setting : settings) {
    sample.predicted.push_back(scale * static_cast<double>(setting.predicted_ns));
    sample.measured.push_back(median_over(setting, rounds));
  }
  return sample;
}

/// Returns samples with resampled rounds; none if there is only one round. Deterministic.
std::vector<Sample> resample(std::span<const TimedSetting> settings, const TimedSetting* reference,
                             std::size_t rounds) {
  std::vector<Sample> samples;
  if (rounds < 2) return samples;
  std::mt19937 random;
  std::vector<std::size_t> drawn(rounds);
  for (std::size_t i = 0; i < kResamples; ++i) {
    for (std::size_t& round : drawn) round = random() % rounds;
    samples.push_back(sample_of(settings, reference, drawn));
  }
  return samples;
}

/// Returns the basic bootstrap interval: the quantiles of the resampled figures, mirrored at the real figure.
std::optional<Range> range_of(const std::vector<Sample>& resampled, double figure,
                              const std::function<double(const Sample&)>& figure_of) {
  if (resampled.empty()) return std::nullopt;
  std::vector<double> figures;
  for (const Sample& sample : resampled) figures.push_back(figure_of(sample));
  std::sort(figures.begin(), figures.end());
  const auto tail = static_cast<std::size_t>(kTail * static_cast<double>(figures.size()));
  return Range{2 * figure - figures[figures.size() - 1 - tail], 2 * figure - figures[tail]};
}

Range within(const Range& range, double least, double most) {
  return {std::clamp(range.low, least, most), std::clamp(range.high, least, most)};
}

void add_errors(Accuracy& accuracy, const Sample& real, const std::vector<Sample>& resampled) {
  const auto mean = [](const Sample& sample) { return mean_of(sample.error_sizes()); };
  const auto p95 = [](const Sample& sample) { return p95_of(sample.error_sizes()); };
  accuracy.mean_error = mean(real);
  accuracy.p95_error = p95(real);
  accuracy.max_error = std::ranges::max(real.error_sizes());
  accuracy.bias = mean_of(real.errors());
  const double most = std::numeric_limits<double>::infinity();
  if (const auto range = range_of(resampled, accuracy.mean_error, mean))
    accuracy.mean_range = within(*range, 0, most);
  if (const auto range = range_of(resampled, accuracy.p95_error, p95))
    accuracy.p95_range = within(*range, 0, most);
}

void add_noise(Accuracy& accuracy, std::span<const TimedSetting> settings) {
  std::vector<double> noises;
  for (const TimedSetting& setting : settings)
    if (const auto noise = noise_of(setting)) noises.push_back(*noise);
  if (noises.empty()) return;
  accuracy.mean_noise = mean_of(noises);
  accuracy.p95_noise = p95_of(noises);
}

using Pair = std::pair<std::size_t, std::size_t>;

/// Returns the difference between two runs of each setting, but at least that of the median setting: a small
/// difference in a few rounds may be luck. 0 if it is not known.
std::vector<double> noises_of(std::span<const TimedSetting> settings) {
  std::vector<double> noises;
  for (const TimedSetting& setting : settings) noises.push_back(noise_of(setting).value_or(0));
  std::vector<double> sorted = noises;
  std::ranges::sort(sorted);
  for (double& noise : noises) noise = std::max(noise, sorted[sorted.size() / 2]);
  return noises;
}

/// For a normal distribution, 95 % of the magnitudes are within 2.9 times their median.
constexpr double kNoisesApart = 3;

/// Applies the rule of docs/results/validation.md, "Ranked pairs". The rule is frozen: another rule, or
/// another value of kNoisesApart, kTail or kResamples, invalidates the tables there.
bool is_ranked(const Pair& pair, const Sample& real, const std::vector<Sample>& resampled,
               const std::vector<double>& noises) {
  const auto [shorter, longer] = std::minmax(real.measured[pair.first], real.measured[pair.second]);
  const double noise = std::max(noises[pair.first], noises[pair.second]);
  if (longer - shorter <= kNoisesApart * noise * shorter) return false;
  const auto order = [&](const Sample& sample) {
    return order_of(sample.measured[pair.first], sample.measured[pair.second]);
  };
  const std::int64_t real_order = order(real);
  const auto other =
      std::ranges::count_if(resampled, [&](const Sample& sample) { return order(sample) != real_order; });
  return static_cast<double>(other) <= kTail * static_cast<double>(resampled.size());
}

double tau_of(const Sample& sample, const std::vector<Pair>& pairs) {
  std::int64_t agreement = 0;
  for (const auto& [i, j] : pairs)
    agreement +=
        order_of(sample.measured[i], sample.measured[j]) * order_of(sample.predicted[i], sample.predicted[j]);
  return static_cast<double>(agreement) / static_cast<double>(pairs.size());
}

void add_ranking(Accuracy& accuracy, const Sample& real, const std::vector<Sample>& resampled,
                 const std::vector<double>& noises) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < real.measured.size(); ++i)
    for (std::size_t j = i + 1; j < real.measured.size(); ++j)
      if (is_ranked({i, j}, real, resampled, noises)) pairs.emplace_back(i, j);
  accuracy.ranked_pairs = pairs.size();
  if (pairs.empty()) return;
  accuracy.kendall_tau = tau_of(real, pairs);
  const auto tau = [&](const Sample& sample) { return tau_of(sample, pairs); };
  if (const auto range = range_of(resampled, *accuracy.kendall_tau, tau))
    accuracy.tau_range = within(*range, -1, 1);
}

}  // namespace

double relative_error(const TimedSetting& setting) {
  return error_of(static_cast<double>(setting.predicted_ns),
                  static_cast<double>(median_of(setting.measured_ns)));
}

std::optional<double> noise_of(const TimedSetting& setting) {
  if (setting.measured_ns.size() < 2) return std::nullopt;
  std::vector<Nanoseconds> halves[2];
  for (std::size_t round = 0; round < setting.measured_ns.size(); ++round)
    halves[round % 2].push_back(setting.measured_ns[round]);
  const auto difference = static_cast<double>(std::abs(median_of(halves[0]) - median_of(halves[1])));
  return difference == 0 ? 0 : difference / static_cast<double>(median_of(setting.measured_ns));
}

Accuracy accuracy_of(std::span<const TimedSetting> settings, std::size_t rounds,
                     const TimedSetting* reference) {
  OFFPROF_CHECK(!settings.empty() && rounds > 0);
  std::vector<std::size_t> all_rounds(rounds);
  std::iota(all_rounds.begin(), all_rounds.end(), std::size_t{0});
  const Sample real = sample_of(settings, reference, all_rounds);
  const std::vector<Sample> resampled = resample(settings, reference, rounds);
  Accuracy accuracy;
  add_errors(accuracy, real, resampled);
  add_noise(accuracy, settings);
  add_ranking(accuracy, real, resampled, noises_of(settings));
  return accuracy;
}

}  // namespace offprof

#include "profiler/recording/tracing_cost.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace offprof {
namespace {

/// Odd, so that the median is the time of a real step.
constexpr int kLeastRounds = 3, kMostRounds = 7;
/// Rounds beyond the least are only for steps short enough for this.
constexpr Nanoseconds kRoundsBudget = 3'000'000'000;

int rounds_for(Nanoseconds round) {
  const auto affordable = static_cast<int>(
      std::clamp<Nanoseconds>(kRoundsBudget / std::max<Nanoseconds>(round, 1), kLeastRounds, kMostRounds));
  return affordable - (affordable + 1) % 2;
}

}  // namespace

TracingCost measure_tracing_cost(const StepsToTrace& steps) {
  const std::array<const std::function<Nanoseconds()>*, 5> kinds = {
      &steps.untraced, &steps.streams, &steps.tracer, &steps.recorder, &steps.everything};
  std::array<std::vector<Nanoseconds>, kinds.size()> times;
  Nanoseconds first_round = 0;
  for (const auto* step : kinds) first_round += (*step)();
  const int rounds = rounds_for(first_round);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < kinds.size(); ++i) times[i].push_back((*kinds[i])());
  std::array<MeasuredQuartiles, kinds.size()> measured;
  std::ranges::transform(times, measured.begin(), summarize_measured);
  return {measured[0], measured[1], measured[2], measured[3], measured[4]};
}

}  // namespace offprof

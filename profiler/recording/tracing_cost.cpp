#include "profiler/recording/tracing_cost.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace offprof {
namespace {

/// Odd, so that the median is the time of a real step.
constexpr int kRounds = 7;

}  // namespace

TracingCost measure_tracing_cost(const StepsToTrace& steps) {
  const std::array<const std::function<Nanoseconds()>*, 5> kinds = {
      &steps.untraced, &steps.streams, &steps.tracer, &steps.recorder, &steps.everything};
  std::array<std::vector<Nanoseconds>, kinds.size()> times;
  for (int round = 0; round <= kRounds; ++round)
    for (std::size_t i = 0; i < kinds.size(); ++i)
      if (const Nanoseconds time = (*kinds[i])(); round > 0) times[i].push_back(time);
  std::array<MeasuredQuartiles, kinds.size()> measured;
  std::ranges::transform(times, measured.begin(), summarize_measured);
  return {measured[0], measured[1], measured[2], measured[3], measured[4]};
}

}  // namespace offprof

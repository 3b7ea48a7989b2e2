#include "profiler/tracing_cost.h"

#include <utility>
#include <vector>

namespace offprof {
namespace {

/// Odd, so that the median is a step's own time.
constexpr int kRounds = 7;

}  // namespace

TracingCost measure_tracing_cost(const StepsToTrace& steps) {
  std::vector<Nanoseconds> untraced, streams, everything;
  for (int round = 0; round <= kRounds; ++round) {
    untraced.push_back(steps.untraced());
    streams.push_back(steps.streams());
    everything.push_back(steps.everything());
    if (round > 0) continue;
    for (auto* times : {&untraced, &streams, &everything}) times->clear();
  }
  return {summarize_measured(std::move(untraced)), summarize_measured(std::move(streams)),
          summarize_measured(std::move(everything))};
}

}  // namespace offprof

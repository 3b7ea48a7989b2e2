#include "simulator/tuner/frontier.h"

#include <algorithm>
#include <tuple>

#include "traces/check.h"

namespace offprof {
namespace {

Bytes peak_of(const Candidate& candidate) {
  return *candidate.predicted.device_peak_bytes;
}
Nanoseconds time_of(const Candidate& candidate) {
  return *candidate.predicted.step_time_ns;
}
auto rank(const Metrics& metrics) {
  return std::tuple(*metrics.host_peak_bytes, *metrics.d2h_bytes);
}

}  // namespace

std::size_t Frontier::first_above(Bytes peak) const {
  const auto found =
      std::upper_bound(candidates_.begin(), candidates_.end(), peak,
                       [](Bytes bytes, const Candidate& candidate) { return bytes < peak_of(candidate); });
  return static_cast<std::size_t>(found - candidates_.begin());
}

bool Frontier::reaches(Bytes peak, Nanoseconds time) const {
  const std::size_t above = first_above(peak);
  return above > 0 && time_of(candidates_[above - 1]) <= time;
}

const Candidate& Frontier::best(const Aim& aim) const {
  OFFPROF_CHECK(!candidates_.empty());
  if (aim.most_peak) {
    const std::size_t above = first_above(*aim.most_peak);
    return candidates_[above > 0 ? above - 1 : 0];
  }
  const auto fast = std::find_if(candidates_.begin(), candidates_.end(),
                                 [&](const Candidate& c) { return time_of(c) <= *aim.most_time; });
  return fast == candidates_.end() ? candidates_.back() : *fast;
}

bool Frontier::add(const Candidate& candidate) {
  const Bytes peak = peak_of(candidate);
  const Nanoseconds time = time_of(candidate);
  const std::size_t above = first_above(peak);
  if (above > 0) {
    Candidate& below = candidates_[above - 1];
    if (peak_of(below) == peak && time_of(below) == time) {
      if (rank(candidate.predicted) >= rank(below.predicted)) return false;
      below = candidate;
      return true;
    }
    if (time_of(below) <= time) return false;
  }
  const auto begin = std::find_if(candidates_.begin(), candidates_.end(),
                                  [&](const Candidate& other) { return peak_of(other) >= peak; });
  const auto end =
      std::find_if(begin, candidates_.end(), [&](const Candidate& other) { return time_of(other) < time; });
  candidates_.insert(candidates_.erase(begin, end), candidate);
  return true;
}

}  // namespace offprof

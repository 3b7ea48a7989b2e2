#include "simulator/tuner/settings/frontier.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "traces/base/check.h"

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
  const bool is_in = place(candidate);
  if (!is_in) note_beaten(candidate);
  return is_in;
}

bool Frontier::place(const Candidate& candidate) {
  const Bytes peak = peak_of(candidate);
  const Nanoseconds time = time_of(candidate);
  const std::size_t above = first_above(peak);
  if (above > 0) {
    Candidate& below = candidates_[above - 1];
    if (peak_of(below) == peak && time_of(below) == time) {
      if (rank(candidate.predicted) >= rank(below.predicted)) return false;
      note_beaten(std::exchange(below, candidate));
      return true;
    }
    if (time_of(below) <= time) return false;
  }
  const auto begin = std::find_if(candidates_.begin(), candidates_.end(),
                                  [&](const Candidate& other) { return peak_of(other) >= peak; });
  const auto end =
      std::find_if(begin, candidates_.end(), [&](const Candidate& other) { return time_of(other) < time; });
  std::vector<Candidate> beaten;
  if (most_runners_up_ > 0) beaten.assign(begin, end);
  candidates_.insert(candidates_.erase(begin, end), candidate);
  for (const Candidate& other : beaten) note_beaten(other);
  return true;
}

/// Compares with two candidates on the frontier: the fastest with at most the same peak, and the one with the
/// lowest peak in at most the same time.
double Frontier::beaten_by(const Candidate& candidate) const {
  const auto share = [](std::int64_t more, std::int64_t than) {
    return static_cast<double>(more - than) / static_cast<double>(std::max<std::int64_t>(than, 1));
  };
  const Candidate& faster = candidates_[first_above(peak_of(candidate)) - 1];
  const Candidate& smaller = best({{}, time_of(candidate)});
  return std::min(share(time_of(candidate), time_of(faster)), share(peak_of(candidate), peak_of(smaller)));
}

void Frontier::note_beaten(const Candidate& candidate) {
  if (most_runners_up_ == 0) return;
  const double by = beaten_by(candidate);
  if (by >= most_beaten_by_) return;
  runners_up_.push_back({by, candidate});
  if (runners_up_.size() < 2 * most_runners_up_) return;
  runners_up_ = nearest_runners_up();
  if (runners_up_.size() == most_runners_up_) most_beaten_by_ = runners_up_.back().beaten_by;
}

/// Compares with the frontier as it is now.
std::vector<Frontier::RunnerUp> Frontier::nearest_runners_up() const {
  std::vector<RunnerUp> nearest = runners_up_;
  for (RunnerUp& one : nearest) one.beaten_by = beaten_by(one.candidate);
  const auto key = [](const RunnerUp& one) {
    return std::tuple(one.beaten_by, peak_of(one.candidate), time_of(one.candidate));
  };
  const auto is_less = [&](const RunnerUp& a, const RunnerUp& b) { return key(a) < key(b); };
  const auto is_same = [&](const RunnerUp& a, const RunnerUp& b) { return key(a) == key(b); };
  std::stable_sort(nearest.begin(), nearest.end(), is_less);
  nearest.erase(std::unique(nearest.begin(), nearest.end(), is_same), nearest.end());
  if (nearest.size() > most_runners_up_)
    nearest.erase(nearest.begin() + static_cast<std::ptrdiff_t>(most_runners_up_), nearest.end());
  return nearest;
}

std::vector<Candidate> Frontier::runners_up() const {
  std::vector<Candidate> candidates;
  for (const RunnerUp& one : nearest_runners_up()) candidates.push_back(one.candidate);
  return candidates;
}

}  // namespace offprof

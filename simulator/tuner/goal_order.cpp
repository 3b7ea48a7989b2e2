#include "simulator/tuner/goal_order.h"

#include <algorithm>
#include <utility>

namespace offprof {
namespace {

/// Step times above this value do not fit the clocks.
constexpr double kLongest = 9e18;

}  // namespace

Nanoseconds step_time_of(const Candidate& candidate) {
  return *candidate.predicted.step_time_ns;
}

Bytes taken_by(const Candidate& candidate) {
  return device_bytes_taken(candidate.predicted);
}

Nanoseconds GoalOrder::slowest() const {
  const double slowest = static_cast<double>(keep_time_) * (1 + goal_.max_slowdown);
  return static_cast<Nanoseconds>(std::min(slowest, kLongest));
}

Aim GoalOrder::aim() const {
  Aim aim{goal_.memory_budget_bytes, {}};
  if (!aim.most_peak) aim.most_time = slowest();
  return aim;
}

bool GoalOrder::fits(const Candidate& candidate) const {
  const std::optional<Bytes> limit = goal_.memory_limit();
  return !limit || (taken_by(candidate) <= *limit && steps_.fits(candidate.policy, *limit));
}

bool GoalOrder::is_within(const Candidate& candidate) const {
  const bool is_fast_enough = goal_.memory_budget_bytes || step_time_of(candidate) <= slowest();
  return is_fast_enough && fits(candidate);
}

bool GoalOrder::is_better(const Candidate& a, const Candidate& b) const {
  const auto key = [](const Candidate& candidate) {
    return std::pair(taken_by(candidate), step_time_of(candidate));
  };
  const bool precedes = goal_.memory_budget_bytes ? step_time_of(a) < step_time_of(b) : key(a) < key(b);
  return precedes && is_within(a);
}

std::tuple<bool, double, double> GoalOrder::distance(const Candidate& candidate) const {
  const auto taken = static_cast<double>(taken_by(candidate));
  const auto time = static_cast<double>(step_time_of(candidate));
  if (!goal_.memory_budget_bytes) {
    const auto most = static_cast<double>(slowest());
    return time <= most ? std::tuple(false, taken, time) : std::tuple(true, time, taken);
  }
  const bool is_within = taken <= static_cast<double>(*goal_.memory_budget_bytes);
  return is_within ? std::tuple(false, time, taken) : std::tuple(true, taken, time);
}

std::optional<Candidate> GoalOrder::choose(const std::vector<Candidate>& frontier) const {
  const auto first_within = [this](auto begin, auto end) {
    const auto found = std::find_if(begin, end, [this](const Candidate& c) { return is_within(c); });
    return found == end ? std::nullopt : std::optional(*found);
  };
  // The frontier is sorted by memory, and therefore, in reverse, by time.
  return goal_.memory_budget_bytes ? first_within(frontier.rbegin(), frontier.rend())
                                   : first_within(frontier.begin(), frontier.end());
}

}  // namespace offprof

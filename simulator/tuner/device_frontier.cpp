#include "simulator/tuner/device_frontier.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "simulator/tuner/goal_order.h"
#include "simulator/tuner/settings/parallel.h"

namespace offprof {
namespace {

/// Limits of the runners-up that are followed through the allocator, and of their events in total.
constexpr std::size_t kMostRunnersUp = 256, kRunnerUpEvents = 2'000'000;

}  // namespace

std::vector<Candidate> frontier_by_taken(std::vector<Candidate> candidates) {
  const auto key = [](const Candidate& candidate) {
    return std::pair(taken_by(candidate), step_time_of(candidate));
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
  std::vector<Candidate> frontier;
  for (Candidate& candidate : candidates)
    if (frontier.empty() || step_time_of(candidate) < step_time_of(frontier.back()))
      frontier.push_back(std::move(candidate));
  return frontier;
}

std::size_t DeviceFrontier::runners_up() const {
  const Step& step = inputs_.step;
  if (!step.allocator()) return 0;
  return std::clamp<std::size_t>(kRunnerUpEvents / std::max<std::size_t>(step.events().size(), 1), 1,
                                 kMostRunnersUp);
}

void DeviceFrontier::add_followed(std::vector<Candidate> candidates) {
  std::ranges::move(candidates, std::back_inserter(followed_));
}

std::vector<Candidate> DeviceFrontier::from_peaks(const Frontier& peaks) {
  if (!inputs_.step.allocator()) return frontier_by_taken(peaks.candidates());
  std::vector<Candidate> candidates = peaks.candidates();
  for (Candidate& candidate : peaks.runners_up()) candidates.push_back(std::move(candidate));
  std::erase_if(candidates, [&](const Candidate& candidate) { return is_followed(candidate); });
  add_followed(with_allocator(std::move(candidates)));
  return frontier_by_taken(followed_);
}

bool DeviceFrontier::is_followed(const Candidate& candidate) const {
  return std::ranges::any_of(followed_, [&](const Candidate& other) {
    return step_time_of(other) == step_time_of(candidate) && other.policy == candidate.policy;
  });
}

std::vector<Candidate> DeviceFrontier::with_allocator(std::vector<Candidate> candidates) const {
  for_each_index(candidates.size(), inputs_.threads(), [&](std::size_t i) {
    candidates[i].predicted = inputs_.steps.with_cache(candidates[i].policy, candidates[i].predicted);
  });
  return candidates;
}

}  // namespace offprof

#include "simulator/tune.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "simulator/replay.h"
#include "traces/check.h"

namespace offprof {
namespace {

/// More candidates than this of one kind change the frontier by less than a person would notice, and cost
/// time.
constexpr std::size_t kMostThresholds = 24;
constexpr std::int64_t kStashCounts[] = {0, 1, 2, 3, 5, 8, 13, 21, 34};

/// One entry per storage version that may move: what a copy of it takes.
std::vector<Bytes> copy_sizes(const Step& step) {
  std::map<std::pair<std::int64_t, std::uint32_t>, Bytes> copies;
  for (const PackRequest& request : step.requests())
    if (request.movability == Movability::kMovable)
      copies.emplace(std::pair(request.storage, request.version), request.storage_bytes);
  std::vector<Bytes> sizes;
  for (const auto& [key, bytes] : copies) sizes.push_back(bytes);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

/// The sizes themselves: a threshold between two of them does what the larger one does. Where there are too
/// many, those that split the bytes to be moved into equal parts.
std::vector<Bytes> threshold_candidates(const std::vector<Bytes>& sizes) {
  const std::set<Bytes> distinct(sizes.begin(), sizes.end());
  if (distinct.size() <= kMostThresholds) return {distinct.begin(), distinct.end()};
  Bytes total = 0;
  for (const Bytes bytes : sizes) total += bytes;
  std::set<Bytes> chosen = {sizes.front(), sizes.back()};
  Bytes below = 0;
  for (const Bytes bytes : sizes) {
    const auto part_before = static_cast<std::int64_t>(kMostThresholds) * below / total;
    below += bytes;
    if (static_cast<std::int64_t>(kMostThresholds) * below / total > part_before) chosen.insert(bytes);
  }
  return {chosen.begin(), chosen.end()};
}

/// On demand, then windows that hold the largest tensor, twice that, and so on to all that is moved.
std::vector<Bytes> prefetch_candidates(const std::vector<Bytes>& sizes) {
  std::vector<Bytes> windows = {0};
  Bytes total = 0;
  for (const Bytes bytes : sizes) total += bytes;
  for (Bytes window = sizes.empty() ? 0 : sizes.back(); window > 0; window *= 2) {
    windows.push_back(window);
    if (window >= total) break;
  }
  return windows;
}

Policy tuned_policy(const TuneGoal& goal) {
  Policy policy;
  policy.name = "tuned";
  policy.host_memory_bytes = goal.host_memory_bytes;
  return policy;
}

/// Runs `work(i)` for every i below `count`, on every core.
template <typename Work>
void for_each_index(std::size_t count, Work work) {
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers.emplace_back(take);
  take();
}

bool is_better(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& candidate) {
    const Metrics& m = candidate.predicted;
    return std::tuple(*m.device_peak_bytes, *m.step_time_ns, *m.host_peak_bytes, *m.d2h_bytes);
  };
  return key(a) < key(b);
}

std::vector<Candidate> frontier_of(std::vector<Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), is_better);
  std::vector<Candidate> frontier;
  for (Candidate& candidate : candidates)
    if (frontier.empty() || *candidate.predicted.step_time_ns < *frontier.back().predicted.step_time_ns)
      frontier.push_back(std::move(candidate));
  return frontier;
}

/// The frontier is sorted by memory, and so, the other way round, by time.
std::optional<Candidate> choose(const TraceSteps& steps, const TuneResult& result, const TuneGoal& goal) {
  const double slowest = static_cast<double>(*result.keep.predicted.step_time_ns) * (1 + goal.max_slowdown);
  const auto fits = [&](const Candidate& candidate) {
    return steps.fits(candidate.policy, *goal.memory_budget_bytes);
  };
  const auto is_fast = [&](const Candidate& candidate) {
    return static_cast<double>(*candidate.predicted.step_time_ns) <= slowest;
  };
  if (goal.memory_budget_bytes) {
    const auto found = std::find_if(result.frontier.rbegin(), result.frontier.rend(), fits);
    return found == result.frontier.rend() ? std::nullopt : std::optional(*found);
  }
  const auto found = std::find_if(result.frontier.begin(), result.frontier.end(), is_fast);
  return found == result.frontier.end() ? std::nullopt : std::optional(*found);
}

/// Keeps what any policy must: what the program holds, what may not move, and what an autograd node that is
/// running asked for. Each storage counts once, as if a reload went back to where the tensor was.
class LeastMemory {
 public:
  explicit LeastMemory(const Step& step)
      : step_(step),
        memory_(step.storage_bytes(), step.resident_bytes()),
        unpacked_(step.requests().size(), 0) {
    for (const std::int32_t storage : step.residents()) memory_.hold_resident(storage);
  }

  Bytes peak() {
    for (const Event& event : step_.events()) replay(event);
    return memory_.peak_bytes();
  }

 private:
  void replay(const Event& event) {
    switch (event.kind) {
      case EventKind::kAlloc:
        return memory_.hold(event.id);
      case EventKind::kFree:
        return memory_.let_go(event.id);
      case EventKind::kPack:
        if (!movable(event.id)) memory_.hold(storage_of(event.id));
        return;
      case EventKind::kRelease:
        if (!movable(event.id)) memory_.let_go(storage_of(event.id));
        return;
      case EventKind::kUnpack:
        return unpack(event.id);
      case EventKind::kNodeEnd:
        for (const SavedId tensor : node_tensors_)
          if (!step_.escapes(tensor)) program_lets_go(tensor);
        node_tensors_.clear();
        return;
      case EventKind::kLetGo:
        return program_lets_go(event.id);
      default:
        return;
    }
  }

  /// What was unpacked before and is still in use is not held twice.
  void unpack(SavedId tensor) {
    if (std::exchange(unpacked_[tensor], 1) != 0) return;
    memory_.hold(storage_of(tensor));
    node_tensors_.push_back(tensor);
  }

  void program_lets_go(SavedId tensor) {
    OFFPROF_CHECK(unpacked_[tensor] != 0);
    unpacked_[tensor] = 0;
    memory_.let_go(storage_of(tensor));
  }

  bool movable(SavedId tensor) const { return step_.requests()[tensor].movability == Movability::kMovable; }
  std::int32_t storage_of(SavedId tensor) const {
    return static_cast<std::int32_t>(step_.requests()[tensor].storage);
  }

  const Step& step_;
  VirtualMemory memory_;
  std::vector<char> unpacked_;  ///< by saved tensor: whether the program holds what unpack returned
  std::vector<SavedId> node_tensors_;
};

}  // namespace

std::vector<Policy> policy_grid(const Step& step, const TuneGoal& goal) {
  const std::vector<Bytes> sizes = copy_sizes(step);
  std::vector<Policy> grid = {preset_policy("keep")};
  for (const Bytes threshold : threshold_candidates(sizes)) {
    const auto copies = sizes.end() - std::lower_bound(sizes.begin(), sizes.end(), threshold);
    for (const std::int64_t stash : kStashCounts) {
      for (const Bytes prefetch : prefetch_candidates(sizes)) {
        Policy policy = tuned_policy(goal);
        policy.threshold_bytes = threshold;
        policy.stash_count = stash;
        policy.prefetch_bytes = prefetch;
        grid.push_back(policy);
      }
      if (stash >= copies) break;  // a larger stash would hold no more
    }
  }
  return grid;
}

const Candidate& least_memory(const TuneResult& result) {
  OFFPROF_CHECK(!result.frontier.empty());
  return *std::ranges::min_element(result.frontier, {}, [](const Candidate& candidate) {
    return device_bytes_taken(candidate.predicted);
  });
}

TuneResult tune(const TraceSteps& steps, const Link& link, const TuneGoal& goal) {
  const Step& step = steps.step(preset_policy("keep"));
  const std::vector<Policy> grid = policy_grid(step, goal);
  std::vector<Candidate> candidates(grid.size());
  for_each_index(grid.size(), [&](std::size_t i) {
    candidates[i] = {grid[i], replay(step, grid[i], link).metrics};
  });

  TuneResult result;
  result.policies_tried = grid.size();
  const Policy trl = preset_policy("trl");
  result.trl = {trl, steps.predict(trl, link)};
  result.keep = {grid.front(), steps.with_cache(grid.front(), candidates.front().predicted)};
  result.device_peak_bound_bytes = LeastMemory(step).peak();
  result.step_time_bound_ns = step.compute_ns();
  result.frontier = frontier_of(std::move(candidates));
  for_each_index(result.frontier.size(), [&](std::size_t i) {
    Candidate& candidate = result.frontier[i];
    candidate.predicted = steps.with_cache(candidate.policy, candidate.predicted);
  });
  result.chosen = choose(steps, result, goal);
  return result;
}

}  // namespace offprof

#include "simulator/advisor/checkpoint_search.h"

#include <algorithm>
#include <iterator>

namespace offprof {
namespace {

using Ranks = std::map<std::size_t, GoalRank>;

Ranks::const_iterator best_of(const Ranks& known) {
  return std::ranges::min_element(known, {}, [](const auto& entry) { return entry.second; });
}

/// Returns the middles of the intervals beside the best k.
std::vector<std::size_t> middles_around(const Ranks& known, Ranks::const_iterator best) {
  std::vector<std::size_t> middles;
  const auto add = [&](std::size_t low, std::size_t high) {
    if (high - low > 1) middles.push_back((low + high) / 2);
  };
  if (best != known.begin()) add(std::prev(best)->first, best->first);
  if (const auto next = std::next(best); next != known.end()) add(best->first, next->first);
  return middles;
}

void try_counts(const std::vector<std::size_t>& counts, Ranks& known,
                const std::function<std::vector<GoalRank>(const std::vector<std::size_t>&)>& try_all) {
  const std::vector<GoalRank> ranks = try_all(counts);
  for (std::size_t i = 0; i < counts.size(); ++i) known.emplace(counts[i], ranks[i]);
}

}  // namespace

std::size_t best_checkpoint_count(
    std::size_t modules, Ranks& known,
    const std::function<std::vector<GoalRank>(const std::vector<std::size_t>&)>& try_all) {
  // Few checkpointed modules suffice once the rest is offloaded or recomputed, so the search begins there.
  std::vector<std::size_t> first = {modules / 8, modules / 3};
  std::erase_if(first, [&](std::size_t count) { return known.contains(count); });
  if (first.size() == 2 && first[0] == first[1]) first.pop_back();
  if (!first.empty()) try_counts(first, known, try_all);
  for (;;) {
    const auto best = best_of(known);
    const std::vector<std::size_t> middles = middles_around(known, best);
    if (middles.empty()) return best->first;
    try_counts(middles, known, try_all);
  }
}

std::size_t checkpointed_within(Nanoseconds most_ns, std::size_t modules, Nanoseconds none_ns,
                                Nanoseconds all_ns) {
  if (most_ns >= all_ns) return modules;
  if (most_ns <= none_ns) return 0;
  const double part = static_cast<double>(most_ns - none_ns) / static_cast<double>(all_ns - none_ns);
  return static_cast<std::size_t>(part * static_cast<double>(modules));
}

}  // namespace offprof

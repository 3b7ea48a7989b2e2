#include "simulator/advisor/world_advice.h"

#include <algorithm>

#include "traces/base/error.h"

namespace offprof {
namespace {

WorldAttempt attempt(int world_size, const std::function<RankAdvice(int)>& advise_rank) {
  try {
    return {world_size, advise_rank(world_size), {}};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    return {world_size, std::nullopt, error.what()};
  }
}

}  // namespace

WorldAdvice advise_world_size(std::vector<int> world_sizes,
                              const std::function<RankAdvice(int)>& advise_rank) {
  WorldAdvice advice;
  // The answer is among world_sizes[low..high]; the end stands for none.
  std::size_t low = 0, high = world_sizes.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const WorldAttempt& tried = advice.attempts.emplace_back(attempt(world_sizes[middle], advise_rank));
    if (!tried.found) {
      world_sizes.erase(world_sizes.begin() + static_cast<std::ptrdiff_t>(middle));
      --high;
    } else if (tried.is_within()) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (std::ranges::none_of(advice.attempts,
                           [](const WorldAttempt& tried) { return tried.found.has_value(); }))
    throw input_error(advice.attempts.front().failure);
  std::ranges::sort(advice.attempts, {}, &WorldAttempt::world_size);
  auto best = std::ranges::find_if(advice.attempts, &WorldAttempt::is_within);
  if (best == advice.attempts.end())
    while (!(--best)->found) {
    }
  advice.best = static_cast<std::size_t>(best - advice.attempts.begin());
  return advice;
}

}  // namespace offprof

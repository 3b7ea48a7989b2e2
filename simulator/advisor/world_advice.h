#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/advisor/advice.h"

namespace offprof {

/// Advice for one rank of a job.
struct RankAdvice {
  int rank = 0;
  Advice advice;
};

/// A job of so many ranks that was tried.
struct WorldAttempt {
  int world_size = 1;
  std::optional<RankAdvice> found{};  ///< nullopt: its step could not be recorded
  std::string failure{};              ///< the reason

  bool is_within() const { return found && found->advice.recommended().is_within; }
};

/// Result of the search for the least number of ranks.
struct WorldAdvice {
  std::vector<WorldAttempt> attempts;  ///< by world size
  /// Index in `attempts`: the smallest with a way within the limits; if none has, the largest that was
  /// recorded.
  std::size_t best = 0;

  const WorldAttempt& best_attempt() const { return attempts[best]; }
};

/// Searches the smallest world size that has a way within the limits, by bisection: the memory of a rank must
/// not grow with their number. `world_sizes` ascend; there must be at least one. `advise_rank` returns the
/// advice for the rank that takes the most memory in a job of that size. A size for which it throws Error
/// (input), because the model cannot be sharded to it for example, is left out. Throws the first of these
/// errors if there is no other size.
WorldAdvice advise_world_size(std::vector<int> world_sizes,
                              const std::function<RankAdvice(int)>& advise_rank);

}  // namespace offprof

#pragma once

#include <limits>
#include <optional>
#include <tuple>

#include "traces/base/units.h"
#include "traces/model/metrics.h"

namespace offprof {

/// The quantity that advice minimizes.
enum class Objective {
  kTime,   ///< step time
  kMemory  ///< device memory (device_bytes_taken)
};

/// Limits of a step, and the objective within them.
struct AdviceGoal {
  Objective objective = Objective::kTime;
  std::optional<Bytes> most_memory{};      ///< device memory taken; nullopt: no limit
  std::optional<Nanoseconds> most_time{};  ///< step time; nullopt: no limit
};

/// Bytes above the memory limit and nanoseconds above the time limit, then the objective, then the other
/// quantity. The smaller rank is the better one.
using GoalRank = std::tuple<Bytes, Nanoseconds, std::int64_t, std::int64_t>;

/// Rank of what cannot be had: no other is worse.
inline constexpr GoalRank kWorstRank = {std::numeric_limits<Bytes>::max(), 0, 0, 0};

/// Returns the rank of a step with these metrics, which must have a step time.
GoalRank rank_of(const Metrics& metrics, const AdviceGoal& goal);

/// Returns true if the metrics are within both limits.
bool is_within(const Metrics& metrics, const AdviceGoal& goal);

}  // namespace offprof

#include "simulator/advisor/goal.h"

#include <algorithm>

namespace offprof {

GoalRank rank_of(const Metrics& metrics, const AdviceGoal& goal) {
  const Bytes taken = device_bytes_taken(metrics);
  const Nanoseconds time = *metrics.step_time_ns;
  const Bytes too_large = goal.most_memory ? std::max<Bytes>(taken - *goal.most_memory, 0) : 0;
  const Nanoseconds too_slow = goal.most_time ? std::max<Nanoseconds>(time - *goal.most_time, 0) : 0;
  return goal.objective == Objective::kTime ? GoalRank(too_large, too_slow, time, taken)
                                            : GoalRank(too_large, too_slow, taken, time);
}

bool is_within(const Metrics& metrics, const AdviceGoal& goal) {
  const GoalRank rank = rank_of(metrics, goal);
  return std::get<0>(rank) == 0 && std::get<1>(rank) == 0;
}

}  // namespace offprof

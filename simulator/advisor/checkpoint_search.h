#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "simulator/advisor/goal.h"

namespace offprof {

/// Returns the number k from 0 to `modules` with the best rank, for a rank that falls to its minimum and
/// rises again. `known` has the ranks of 0 and of `modules`, and gets those of all tried k. `try_all` returns
/// the ranks of several k, which it may record side by side. Halves the two intervals around the best k until
/// none is left.
std::size_t best_checkpoint_count(
    std::size_t modules, std::map<std::size_t, GoalRank>& known,
    const std::function<std::vector<GoalRank>(const std::vector<std::size_t>&)>& try_all);

/// Returns how many of `modules` can be checkpointed within `most_ns`, if a step takes `none_ns` with none of
/// them and `all_ns` with all, and each adds the same.
std::size_t checkpointed_within(Nanoseconds most_ns, std::size_t modules, Nanoseconds none_ns,
                                Nanoseconds all_ns);

}  // namespace offprof

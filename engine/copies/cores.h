#pragma once

#include <cstddef>
#include <vector>

namespace offprof {

/// Returns the cores that the calling thread may run on, in rising order.
std::vector<int> allowed_cores();

/// Restricts the calling thread, and all threads that it starts later, to these cores. Does nothing if the
/// system does not allow it.
void stay_on(const std::vector<int>& cores);

struct CoreSplit {
  std::vector<int> copies, compute;
};

/// Gives one of `cores` to copies and the others to compute, or all of them to both if compute would get
/// fewer than `compute_threads`. The core for copies depends on `process`, so that processes on one machine
/// do not all choose the same core.
CoreSplit split_cores(const std::vector<int>& cores, std::size_t compute_threads, int process);

}  // namespace offprof

#pragma once

#include <cstddef>
#include <vector>

namespace offprof {

/// The cores that the calling thread may run on, in rising order.
std::vector<int> allowed_cores();

/// Keeps the calling thread on these cores, and all threads that it starts from here on. Does nothing where
/// the system does not allow it.
void stay_on(const std::vector<int>& cores);

struct CoreSplit {
  std::vector<int> copies, compute;
};

/// One of `cores` for copies and the others for compute; all of them for both where that would leave fewer
/// than `compute_threads`. Which one copies get depends on `process`, so that of processes beside each other
/// not all copy on one core and compute on another.
CoreSplit split_cores(const std::vector<int>& cores, std::size_t compute_threads, int process);

}  // namespace offprof

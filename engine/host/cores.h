#pragma once

#include <vector>

namespace offprof {

/// The cores that the calling thread may run on, in rising order.
std::vector<int> allowed_cores();

/// Keeps the calling thread on these cores, and all threads that it starts from here on. Does nothing where
/// the system does not allow it.
void stay_on(const std::vector<int>& cores);

/// One core for copies, the others for compute.
struct CoreSplit {
  int copies = 0;
  std::vector<int> compute;
};

/// Of `cores`, which are at least two. Which one copies get depends on `process`, so that of processes beside
/// each other not all copy on one core and compute on another.
CoreSplit split_cores(const std::vector<int>& cores, int process);

}  // namespace offprof

#include "engine/copies/cores.h"

#include <sched.h>

#include "traces/base/check.h"

namespace offprof {

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  return cores;
}

void stay_on(const std::vector<int>& cores) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int core : cores) CPU_SET(core, &wanted);
  sched_setaffinity(0, sizeof wanted, &wanted);
}

CoreSplit split_cores(const std::vector<int>& cores, std::size_t compute_threads, int process) {
  OFFPROF_CHECK(compute_threads > 0 && process >= 0);
  if (cores.size() <= compute_threads) return {cores, cores};
  const int copies = cores[static_cast<std::size_t>(process) % cores.size()];
  CoreSplit split{{copies}, cores};
  std::erase(split.compute, copies);
  return split;
}

}  // namespace offprof

#include "engine/host/cores.h"

#include <sched.h>

#include "traces/check.h"

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

CoreSplit split_cores(const std::vector<int>& cores, int process) {
  OFFPROF_CHECK(cores.size() >= 2 && process >= 0);
  CoreSplit split{cores[static_cast<std::size_t>(process) % cores.size()], cores};
  std::erase(split.compute, split.copies);
  return split;
}

}  // namespace offprof

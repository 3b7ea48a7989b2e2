#pragma once

#include <string>
#include <vector>

namespace offprof {

enum class Health {
  kWorks,
  kMissing,   ///< `run` needs it, on some device at least
  kOptional,  ///< not there; something extra needs it, or other hardware
};

/// One thing that offprof builds on, and how it is here.
struct Finding {
  std::string name;
  Health health = Health::kWorks;
  std::string detail;  ///< version, place, or what is wrong
  std::string mend;    ///< the command or the deed that would mend it; empty where it works
};

/// Looks at everything. Libraries are opened in child processes, so a broken one is a finding and no crash.
std::vector<Finding> examine_machine();

}  // namespace offprof

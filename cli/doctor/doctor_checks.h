#pragma once

#include <string>
#include <vector>

namespace offprof {

enum class Health {
  kWorks,
  kMissing,   ///< missing, and `run` needs it on at least one device
  kOptional,  ///< missing, but only an extra feature or other hardware needs it
};

/// The state of one component that offprof depends on.
struct Finding {
  std::string name;
  Health health = Health::kWorks;
  std::string detail;  ///< version, location, or a description of the problem
  std::string fix;     ///< the command or action that fixes the problem; empty if there is none
};

/// Checks all components. Opens libraries in child processes, so that a broken library becomes a finding
/// instead of a crash.
std::vector<Finding> examine_machine();

}  // namespace offprof

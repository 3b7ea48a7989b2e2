#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/hazards/leftovers.h"
#include "tests/properties/instruction.h"
#include "tests/properties/program_runner.h"

namespace offprof {

/// What has been tried so far.
struct Coverage {
  std::size_t programs = 0;
  std::size_t refused = 0;      ///< programs of which LibTorch refused something
  std::size_t recorded = 0;     ///< programs that the profiler records, so that their memory is predicted
  std::size_t policies = 0;     ///< runs under a policy
  std::size_t predictions = 0;  ///< of them those whose memory was held against its simulation
  std::size_t compressed = 0;   ///< runs with compressed memory in the place of a disk
  std::size_t half_dense = 0;  ///< runs of which the simulation knows no program: see TraceSteps::inexactness
  std::size_t recipes = 0;     ///< tensors of which it is known how to make them again
  std::size_t remade = 0;      ///< of those held against their simulation, tensors that were made again
  std::size_t recomputing = 0;  ///< runs under a policy that makes tensors again
  std::size_t not_remade = 0;   ///< runs that ended since what a tensor is made of had been changed in place
  std::size_t asked_again = 0;  ///< those in which TRL's rules had let go of what backward asked for
  std::set<std::string> operations;
  std::map<std::string, std::size_t> not_recorded;  ///< why, and how many programs
};

/// Holds random programs to what the engine promises: gradients and refusals of plain autograd, memory as
/// simulated, nothing left.
class CaseCheck {
 public:
  /// `device` must outlive it.
  explicit CaseCheck(CountingDevice& device);

  /// What does not hold, a line each; none: everything does.
  std::vector<std::string> findings_of(const RandomCase& random_case);
  const Coverage& coverage() const { return coverage_; }

 private:
  struct Recording;

  void count(const Instructions& program, const Outcome& plain);
  void find_recipes(const Instructions& program, Recording& recording);
  std::optional<Recording> record(const Instructions& program);
  void check_policy(const RandomCase& random_case, const Policy& policy, const Outcome& plain,
                    const std::optional<Recording>& recording);
  void check_refused(const Policy& policy, const Outcome& outcome, const Outcome& plain,
                     std::string_view kind, bool has_reason);
  void check_outcome(const Policy& policy, const PolicyOutcome& measured, const Outcome& plain);
  void check_memory(const Recording& recording, const RandomCase& random_case, const Policy& policy,
                    const PolicyOutcome& measured);
  void find(const Policy& policy, const std::string& what);
  bool gives_disk_for(const Policy& policy);

  CountingDevice& device_;
  bool has_compressed_memory_ = false;  ///< in the place of the disk
  ProgramRunner runner_;
  Coverage coverage_;
  std::vector<std::string> findings_;
};

}  // namespace offprof

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

/// Counts of the cases so far.
struct Coverage {
  std::size_t programs = 0;
  std::size_t refused = 0;      ///< programs with an operation that LibTorch refused
  std::size_t recorded = 0;     ///< programs that the profiler records, so that their memory is predicted
  std::size_t policies = 0;     ///< runs under a policy
  std::size_t predictions = 0;  ///< runs whose memory was compared with the simulation
  std::size_t compressed = 0;   ///< runs with compressed memory in place of a disk
  /// Runs for which the trace has no exact step program: see TraceSteps::inexactness.
  std::size_t half_dense = 0;
  std::size_t recomputations = 0;  ///< tensors with known recompute steps
  std::size_t recomputed = 0;      ///< recomputed tensors in the runs that were compared with the simulation
  std::size_t recomputing = 0;     ///< runs under a policy that recomputes tensors
  std::size_t not_recomputed = 0;  ///< runs that ended because a source of a tensor had been changed in place
  /// Runs in which backward unpacked a tensor again that TRL's rules had dropped.
  std::size_t asked_again = 0;
  std::set<std::string> operations;
  std::map<std::string, std::size_t> not_recorded;  ///< the reasons, with the number of programs
};

/// Checks what the engine promises on random programs: the gradients and refusals of plain autograd, memory
/// as simulated, and nothing left behind.
class CaseCheck {
 public:
  /// Creates the check; `device` must outlive it.
  explicit CaseCheck(CountingDevice& device);

  /// Returns a line for each check that fails; none if all hold.
  std::vector<std::string> findings_of(const RandomCase& random_case);
  const Coverage& coverage() const { return coverage_; }

 private:
  struct Recording;

  void count(const Instructions& program, const Outcome& plain);
  void find_recomputations(const Instructions& program, Recording& recording);
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
  bool has_compressed_memory_ = false;  ///< in place of the disk
  ProgramRunner runner_;
  Coverage coverage_;
  std::vector<std::string> findings_;
};

}  // namespace offprof

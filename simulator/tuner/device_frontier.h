#pragma once

#include <cstddef>
#include <vector>

#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/tune_inputs.h"

namespace offprof {

/// Returns the Pareto frontier over device memory taken and step time, least memory first.
std::vector<Candidate> frontier_by_taken(std::vector<Candidate> candidates);

/// Converts the frontier over device peak and step time, which guides the searches, into the frontier over
/// device memory and step time. With a caching allocator, device memory is the memory that it reserves.
class DeviceFrontier {
 public:
  /// `inputs` must outlive it.
  explicit DeviceFrontier(const TuneInputs& inputs) : inputs_(inputs) {}

  /// Returns the number of runners-up that a frontier over peaks should keep. The allocator's memory is also
  /// computed for policies that are dominated by a small margin in peak and time.
  std::size_t runners_up() const;

  /// Returns the frontier of those candidates, least memory first. Candidates of the previous call are not
  /// followed through the allocator again.
  std::vector<Candidate> from_peaks(const Frontier& peaks);

  /// Adds the allocator's memory to the candidate.
  Candidate with_allocator(const Candidate& candidate) const {
    return with_allocator(std::vector{candidate}).front();
  }

 private:
  std::vector<Candidate> with_allocator(std::vector<Candidate> candidates) const;

  const TuneInputs& inputs_;
  std::vector<Candidate> known_;  ///< with the allocator's memory, if there is an allocator
};

}  // namespace offprof

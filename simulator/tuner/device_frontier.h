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

  /// Adds candidates that have the allocator's memory already.
  void add_followed(std::vector<Candidate> candidates);

  /// Returns the frontier of those candidates, of the earlier calls' and of the added ones, least memory
  /// first. None is followed through the allocator twice.
  std::vector<Candidate> from_peaks(const Frontier& peaks);

 private:
  bool is_followed(const Candidate& candidate) const;
  std::vector<Candidate> with_allocator(std::vector<Candidate> candidates) const;

  const TuneInputs& inputs_;
  std::vector<Candidate> followed_;  ///< with the allocator's memory, if there is an allocator
};

}  // namespace offprof

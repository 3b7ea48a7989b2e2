#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "traces/metrics.h"
#include "traces/policy.h"

namespace offprof {

/// A policy and what it is predicted to do.
struct Candidate {
  Policy policy;
  Metrics predicted;
};

/// What a candidate is chosen by: one of the two is the limit, and the other is to be least within it.
struct Aim {
  std::optional<Bytes> most_peak;
  std::optional<Nanoseconds> most_time;
};

/// Candidates of which none has a lower peak at as little time: by peak, lowest first, and so by time,
/// longest first. Where two have equal peak and time, the one with fewer bytes in host memory, then with
/// fewer bytes copied, then that came first is kept.
class Frontier {
 public:
  /// Puts it in where no other beats it, and takes out those that it beats. Whether it is in.
  bool add(const Candidate& candidate);

  /// Whether one of them has at most that peak and at most that time.
  bool reaches(Bytes peak, Nanoseconds time) const;

  /// The best within the aim's limit; where none is, the nearest to it. There is at least one candidate.
  const Candidate& best(const Aim& aim) const;

  const std::vector<Candidate>& candidates() const { return candidates_; }

 private:
  /// The first with a peak above `peak`.
  std::size_t first_above(Bytes peak) const;

  std::vector<Candidate> candidates_;
};

}  // namespace offprof

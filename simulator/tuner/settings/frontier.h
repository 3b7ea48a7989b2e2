#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "traces/model/metrics.h"
#include "traces/model/policy.h"

namespace offprof {

/// A policy and its predicted metrics.
struct Candidate {
  Policy policy;
  Metrics predicted;
};

/// Criterion for choosing a candidate: one of the two limits is set, and the other quantity is minimized.
struct Aim {
  std::optional<Bytes> most_peak;
  std::optional<Nanoseconds> most_time;
};

/// Pareto frontier of candidates over device peak and step time, sorted by peak, lowest first, and therefore
/// by time, longest first. Of two candidates with equal peak and time it keeps the one with fewer bytes in
/// host memory, then the one with fewer copied bytes, then the first one.
class Frontier {
 public:
  /// `runners_up`: number of dominated candidates that are kept as well.
  explicit Frontier(std::size_t runners_up = 0) : most_runners_up_(runners_up) {}

  /// Inserts the candidate unless another dominates it, and removes those that it dominates. Returns true if
  /// it was inserted.
  bool add(const Candidate& candidate);

  /// Returns true if a candidate has at most this peak and at most this time.
  bool reaches(Bytes peak, Nanoseconds time) const;

  /// Returns the best candidate within the aim's limit; if none is within it, the nearest to it. There must
  /// be at least one candidate.
  const Candidate& best(const Aim& aim) const;

  const std::vector<Candidate>& candidates() const { return candidates_; }
  std::size_t most_runners_up() const { return most_runners_up_; }

  /// Returns the candidates that are dominated by the smallest margin: a share of the peak or of the time,
  /// whichever is less. Another measure of memory, close to the peak, may rank them differently. No two of
  /// them have the same peak and time.
  std::vector<Candidate> runners_up() const;

 private:
  struct RunnerUp {
    double beaten_by = 0;
    Candidate candidate;
  };

  bool place(const Candidate& candidate);
  double beaten_by(const Candidate& candidate) const;
  void note_beaten(const Candidate& candidate);
  std::vector<RunnerUp> nearest_runners_up() const;

  /// Returns the index of the first candidate with a peak above `peak`.
  std::size_t first_above(Bytes peak) const;

  std::vector<Candidate> candidates_;
  std::size_t most_runners_up_;
  std::vector<RunnerUp> runners_up_;  ///< up to twice as many as runners_up() returns
  double most_beaten_by_ = std::numeric_limits<double>::max();
};

}  // namespace offprof

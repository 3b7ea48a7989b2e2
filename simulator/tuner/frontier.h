#pragma once

#include <cstddef>
#include <limits>
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
  /// `runners_up`: so many of those that were beaten are kept too.
  explicit Frontier(std::size_t runners_up = 0) : most_runners_up_(runners_up) {}

  /// Puts it in where no other beats it, and takes out those that it beats. Whether it is in.
  bool add(const Candidate& candidate);

  /// Whether one of them has at most that peak and at most that time.
  bool reaches(Bytes peak, Nanoseconds time) const;

  /// The best within the aim's limit; where none is, the nearest to it. There is at least one candidate.
  const Candidate& best(const Aim& aim) const;

  const std::vector<Candidate>& candidates() const { return candidates_; }

  /// Those beaten by least, each by that share of its peak or of its time, whichever is less: what another
  /// measure of memory, near the peak, may place otherwise. None has both the peak and the time of another.
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

  /// The first with a peak above `peak`.
  std::size_t first_above(Bytes peak) const;

  std::vector<Candidate> candidates_;
  std::size_t most_runners_up_;
  std::vector<RunnerUp> runners_up_;  ///< up to twice as many as are kept
  double most_beaten_by_ = std::numeric_limits<double>::max();
};

}  // namespace offprof

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace offprof {

/// Most ranks that `--rank auto` runs.
inline constexpr std::size_t kMostAutomaticRanks = 32;

/// Ranks of a job that one command runs, one after the other: those that the user names, or representative
/// ones.
///
/// Representative are rank 0, the ranks that it exchanges messages with, those that these do, and so on,
/// which are the stages of a pipeline in their order; and the last rank, which has the smallest shards where
/// they are uneven. They are at most kMostAutomaticRanks.
class RankQueue {
 public:
  /// `ranks`: those that the user names; empty: representative ones of `world_size`. `said` is the folder in
  /// which ranks leave the numbers of their partners (python/offprof/lone_rank.py).
  RankQueue(std::vector<int> ranks, int world_size, std::string said);

  /// Returns the next rank, after the one before has run; nullopt: all have.
  std::optional<int> next();

 private:
  void add_partners_of(int rank);
  bool has(int rank) const;

  std::vector<int> ranks_;
  bool is_automatic_;
  int last_;
  std::string said_;
  std::size_t taken_ = 0;
};

}  // namespace offprof

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace offprof {

/// Exit status of a rank that ended because another one has to run first (python/offprof/lone_rank.py).
inline constexpr int kRankWaits = 75;

/// Most ranks that `--rank auto` runs.
inline constexpr std::size_t kMostAutomaticRanks = 32;

/// Ranks of a job that one command runs, one after the other: those that the user names, or representative
/// ones.
///
/// Representative are rank 0, the ranks that it exchanges messages with, those that these do, and so on,
/// which are the stages of a pipeline in their order; and the last rank, which has the smallest shards where
/// they are uneven. They are at most kMostAutomaticRanks.
///
/// A rank may need what another one says that has not run yet, which in turn needs what the first has said:
/// stages of a pipeline tell each other the shapes of activations and of gradients. Then it ends, the other
/// one runs, and it begins anew.
class RankQueue {
 public:
  /// `ranks`: those that the user names; empty: representative ones of `world_size`. In the folder `said`
  /// ranks leave what they say and the numbers of their partners (python/offprof/lone_rank.py), and the queue
  /// leaves the numbers of the ranks that are still to come.
  RankQueue(std::vector<int> ranks, int world_size, std::string said);

  /// Returns the next rank, after the one before has run; nullopt: all have.
  std::optional<int> next();

  /// Puts the last rank behind the one that it waits for: it has ended with kRankWaits. Throws Error
  /// (environment) if ranks wait for each other without saying anything.
  void put_back();

 private:
  void tell_ranks_to_come() const;
  /// Returns the number of files in the folder, which grows with each thing that a rank says.
  std::ptrdiff_t things_said() const;
  void add_partners_of(int rank);
  bool has(int rank) const;

  std::vector<int> ranks_;
  bool is_automatic_;
  int last_;
  std::string said_;
  std::size_t taken_ = 0;
  std::map<int, std::ptrdiff_t> said_when_put_back_;  ///< by rank
};

}  // namespace offprof

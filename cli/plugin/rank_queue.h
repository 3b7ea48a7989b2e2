#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace offprof {

/// Exit status of a rank that ended because another one has to run first (python/offprof/lone_rank.py).
inline constexpr int kRankWaits = 75;

/// Environment variable: folder in which ranks leave what they say, where ranks of later commands find it.
/// Without it, what they say is gone with the command.
inline constexpr const char* kSaidVariable = "OFFPROF_RANKS_SAID";

/// Returns the ranks whose objects that rank has heard, and those that they have heard, with the rank itself,
/// ascending. `said`: see RankQueue.
std::vector<int> ranks_heard_by(int rank, const std::string& said);

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
/// stages of a pipeline tell each other the shapes of activations and of gradients. Then it ends, others run,
/// and it begins anew as soon as one has said what it needs.
class RankQueue {
 public:
  /// `ranks`: those that the user names; empty: representative ones of `world_size`. In the folder `said`
  /// ranks leave what they say and the numbers of their partners (python/offprof/lone_rank.py), and the queue
  /// leaves the numbers of the ranks that are still to come.
  RankQueue(std::vector<int> ranks, int world_size, std::string said);

  /// Returns the next rank, after the one before has run; nullopt: all have. Throws Error (environment) if
  /// those that are left wait for each other.
  std::optional<int> next();

  /// Puts the last rank back, to run again once what it waits for has been said: it has ended with
  /// kRankWaits.
  void put_back();

  /// Returns the ranks that have not run, of those that are known.
  std::vector<int> left() const;

 private:
  /// An object that a rank waits for.
  struct Wait {
    int rank = 0;     ///< that says it
    std::string key;  ///< under which it says it: the name of a file
  };

  void tell_ranks_to_come() const;
  bool can_run(int rank) const;
  std::string why_none_can_run() const;
  void add_representatives();
  bool has(int rank) const;

  std::vector<int> ranks_;
  bool is_automatic_;
  bool follows_partners_;  ///< until the last rank has been added
  int last_;
  std::string said_;
  std::size_t taken_ = 0;
  std::map<int, Wait> waits_;  ///< by rank
};

}  // namespace offprof

#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace offprof {

/// More ranks than the largest jobs have. A rank alone needs some memory for each other one.
inline constexpr int kMostRanks = 1 << 20;

/// Job of many ranks, of which some run here, each alone.
struct RankOptions {
  std::optional<int> world_size{};  ///< nullopt: the command is no rank
  std::vector<int> ranks{};         ///< in the order in which they run; empty: representative ones
  bool is_automatic = false;        ///< `--rank auto`
  int nodes = 1;
  std::string cluster{};  ///< name or absolute path of a cluster profile; empty: the usual one of the card

  int ranks_per_node() const { return world_size.value_or(1) / nodes; }
};

/// Parses `0,3,8-11`: numbers and ranges, separated by commas, in that order. Throws Error (input) if it is
/// something else, or names a rank twice.
std::vector<int> parse_ranks(const std::string& text);

/// Parses `8`, or `1..64`: 1, 2, 4 and so on, and the end itself. Returns the numbers of ranks, which ascend.
/// Throws Error (input) if it is something else.
std::vector<int> parse_world_sizes(const std::string& text);

/// Adds `--world-size`, `--rank`, `--nodes` and `--cluster`, to that group of the help if it is not empty.
void add_rank_options(CLI::App& app, RankOptions& options, const std::string& group = "");

/// Returns the name of a file of one rank: `path` if the rank is the only one that is named, else with the
/// number before its extensions, `trace.rank3.json.gz`. An empty path stays empty.
std::string rank_file(const RankOptions& options, const std::string& path, int rank);

/// Adds `--cluster`. The parse throws Error (input) if there is no such cluster.
CLI::Option* add_cluster_option(CLI::App& app, std::string& cluster);

/// Checks the options against each other, after they are parsed, and chooses rank 0 if none is given. Throws
/// Error (input).
void complete(RankOptions& options);

/// Returns the place of a rank among others in a report: in the order in which the user names them, which is
/// not always that in which they can run, or by number.
std::ptrdiff_t place_of(const RankOptions& options, int rank);

/// Returns the environment variables that torchrun sets for a rank. `options` has a world size.
std::map<std::string, std::string> rank_environment(const RankOptions& options, int rank);

}  // namespace offprof

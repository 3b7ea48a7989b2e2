#include "cli/options/rank_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "cli/options/options.h"
#include "engine/devices/virtual_gpu/collectives/cluster_profile.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Ranks that one command runs, one after the other.
constexpr int kMostRanksRun = 1024;

// Where torchrun's rank 0 would listen. Nobody listens there.
constexpr const char* kAddress = "127.0.0.1";
constexpr const char* kPort = "29500";

int parse_rank(std::string_view text, const std::string& whole) {
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc{} || end != text.data() + text.size() || rank < 0 || rank >= kMostRanks)
    throw input_error(fmt::format("'{}' is not a list of ranks", whole),
                      "Give numbers or ranges, separated by commas: 0,3,8-11");
  return rank;
}

/// Returns the largest number up to `most` that divides the number.
int largest_divisor(int number, int most) {
  while (number % most != 0) --most;
  return most;
}

}  // namespace

std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t dash = item.find('-');
    const int first = parse_rank(item.substr(0, dash), text);
    const int last = dash == std::string_view::npos ? first : parse_rank(item.substr(dash + 1), text);
    if (last < first)
      throw input_error(fmt::format("'{}' is not a range of ranks", item),
                        fmt::format("Give the smaller one first: {}-{}.", last, first));
    if (last - first >= kMostRanksRun)
      throw input_error(fmt::format("'{}' is not a range of at most {} ranks", item, kMostRanksRun));
    for (int rank = first; rank <= last; ++rank) {
      if (std::ranges::find(ranks, rank) != ranks.end())
        throw input_error(fmt::format("rank {} is given twice", rank));
      ranks.push_back(rank);
    }
    if (comma == std::string_view::npos) return ranks;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<int> parse_world_sizes(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto number = [&](std::string_view part) {
    int value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || end != part.data() + part.size() || value < 1 || value > kMostRanks)
      throw input_error(fmt::format("'{}' is not a number of ranks from 1 to {}", part, kMostRanks),
                        "Give one, or a range: 8, or 1..64");
    return value;
  };
  const std::string_view all = text;
  const int first = number(all.substr(0, dots));
  const int last = dots == std::string::npos ? first : number(all.substr(dots + 2));
  if (last < first)
    throw input_error(fmt::format("{} is less than {}", last, first), "Give the smaller one first.");
  std::vector<int> sizes;
  for (std::int64_t size = first; size < last; size *= 2) sizes.push_back(static_cast<int>(size));
  sizes.push_back(last);
  return sizes;
}

void add_rank_options(CLI::App& app, RankOptions& options, const std::string& group) {
  const std::array<CLI::Option*, 4> added = {
      add_count_option(app, "--world-size", options.world_size, 1, kMostRanks,
                       "Run the program as a rank of a job of so many ranks, without the others"),
      add_parsed_option(
          app, "--rank", "auto|R[,R...]",
          [&options](const std::string& text) {
            options.is_automatic = text == "auto";
            if (!options.is_automatic) options.ranks = parse_ranks(text);
          },
          "Ranks to run, one after the other, such as 0,3,8-11; auto: the first, the last, and each stage of "
          "a "
          "pipeline (default 0)"),
      add_count_option(app, "--nodes", options.nodes, 1, kMostRanks,
                       "Nodes that the ranks are on; each has as many devices as ranks (default 1)"),
      add_cluster_option(app, options.cluster)};
  if (group.empty()) return;
  for (CLI::Option* option : added) option->group(group);
}

CLI::Option* add_cluster_option(CLI::App& app, std::string& cluster) {
  return add_parsed_option(
      app, "--cluster", "NAME|FILE",
      [&cluster](const std::string& text) {
        load_cluster(text);
        cluster = name_or_absolute_path(text, cluster_names());
      },
      fmt::format(
          "Links between ranks, for the times of collectives: {}, or a JSON file (default: the usual one "
          "of the card)",
          fmt::join(cluster_names(), ", ")));
}

void complete(RankOptions& options) {
  if (!options.world_size) {
    if (options.ranks.empty() && !options.is_automatic && options.nodes == 1) return;
    const bool names_rank = !options.ranks.empty() || options.is_automatic;
    throw input_error(fmt::format("{} needs --world-size", names_rank ? "--rank" : "--nodes"),
                      "Give the number of ranks of the job: --world-size 8");
  }
  if (options.ranks.empty() && !options.is_automatic) options.ranks = {0};
  for (const int rank : options.ranks)
    if (rank >= *options.world_size)
      throw input_error(fmt::format("there is no rank {} among {} ranks", rank, *options.world_size),
                        fmt::format("Ranks are 0 to {}.", *options.world_size - 1));
  if (*options.world_size % options.nodes != 0)
    throw input_error(fmt::format("{} ranks do not fill {} nodes evenly", *options.world_size, options.nodes),
                      fmt::format("Give a number of nodes that divides {}: --nodes {}", *options.world_size,
                                  largest_divisor(*options.world_size, options.nodes)));
}

std::string rank_file(const RankOptions& options, const std::string& path, int rank) {
  if (path.empty() || options.ranks.size() == 1) return path;
  const std::size_t slash = path.find_last_of('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  std::size_t end = path.size();
  for (const std::string_view extension : {".gz", ".json"})
    if (std::string_view(path).substr(begin, end - begin).ends_with(extension)) end -= extension.size();
  return fmt::format("{}.rank{}{}", path.substr(0, end), rank, path.substr(end));
}

std::ptrdiff_t place_of(const RankOptions& options, int rank) {
  return options.ranks.empty() ? rank : std::ranges::find(options.ranks, rank) - options.ranks.begin();
}

std::map<std::string, std::string> rank_environment(const RankOptions& options, int rank) {
  const int per_node = options.ranks_per_node();
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(*options.world_size)},
          {"LOCAL_RANK", std::to_string(rank % per_node)},
          {"LOCAL_WORLD_SIZE", std::to_string(per_node)},
          {"GROUP_RANK", std::to_string(rank / per_node)},
          {"GROUP_WORLD_SIZE", std::to_string(options.nodes)},
          {"MASTER_ADDR", kAddress},
          {"MASTER_PORT", kPort}};
}

}  // namespace offprof

#include "engine/devices/virtual_gpu/collectives/collective_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "traces/base/whole_number.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

// Figures of NCCL's src/graph/tuning.cc: see CollectiveCost. Latencies are in microseconds.
enum Protocol : std::size_t { kLl, kLl128, kSimple, kProtocols };

struct Latency {
  double base = 0;  ///< of a collective
  double nvlink_step = 0, pcie_step = 0, network_step = 0;
};

constexpr std::array<Latency, kProtocols> kRing = {
    {{6.6, 0.6, 1.0, 2.7}, {14.0, 1.9, 2.5, 4.0}, {8.4, 3.4, 5.7, 14.0}}};
constexpr std::array<Latency, kProtocols> kTree = {
    {{6.8, 0.6, 1.0, 5.0}, {14.0, 1.25, 1.9, 8.5}, {8.4, 4.0, 4.0, 14.0}}};
constexpr double kSharpUs = 25;

// Time of the host's network thread for a step, which a step within a node of a ring over nodes takes, too.
constexpr std::array<double, kProtocols> kNetworkOverheadUs = {1.0, 1.0, 3.0};

// Parts of the bus bandwidth that protocols reach. LL sends a flag with each four bytes, LL128 with each 120.
constexpr double kRingLlShare = 0.5, kLl128Share = 0.92;
constexpr double kTreeShare = 0.92, kTreeLlShare = 1 / 3.8, kTreeLl128ShareInNode = 7.0 / 9,
                 kTreeLl128Share = 120.0 / 128;

// The most that LL reaches in bytes per second: within a node by the generation of the card, between nodes by
// their number (Intel's processors).
constexpr double kMostOfLlBefore8 = 39.0e9, kMostOfLl8 = 87.7e9, kMostOfLl9 = 141e9, kMostOfLl10 = 282e9;
constexpr double kMostOfLlOnTwoNodes = 39.0e9, kMostOfLlOnMoreNodes = 20.4e9;

constexpr double kUsPerSecond = 1e6;
constexpr double kPerNanosecond = 1e-9;
constexpr double kNsPerUs = 1e3;

double step_in_node(const Latency& latency, bool has_nvlink) {
  return has_nvlink ? latency.nvlink_step : latency.pcie_step;
}

/// Returns the shortest time of a protocol, each of which `us_of` returns in microseconds.
template <typename UsOf>
double shortest_us(bool has_nvlink, const UsOf& us_of) {
  double shortest = std::numeric_limits<double>::infinity();
  for (std::size_t protocol = 0; protocol < kProtocols; ++protocol)
    if (protocol != kLl128 || has_nvlink) shortest = std::min(shortest, us_of(protocol));
  return shortest;
}

double transfer_us(double bytes, double bytes_per_second) {
  return bytes / bytes_per_second * kUsPerSecond;
}

/// Returns the steps of a ring.
int steps_of(Collective collective, int ranks) {
  return (collective == Collective::kAllReduce ? 2 : 1) * (ranks - 1);
}

/// Returns the share of the message that crosses each link.
double traffic_of(Collective collective, int ranks) {
  const double others = (ranks - 1.0) / ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * others;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return others;
    default:
      return 1;
  }
}

/// Returns the messages of a rank in a collective that consists of them, or nullopt.
std::optional<Messages> messages_of(Collective collective, Bytes bytes, GroupShape group) {
  switch (collective) {
    case Collective::kAllToAll: {
      const int in_node = group.ranks_of_node() - 1, between_nodes = group.ranks - group.ranks_of_node();
      return Messages{in_node, between_nodes, bytes / group.ranks * in_node,
                      bytes / group.ranks * between_nodes};
    }
    case Collective::kSend:
    case Collective::kReceive:
      return group.nodes <= 1 ? Messages{1, 0, bytes, 0} : Messages{0, 1, 0, bytes};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string_view name_of(Collective collective) {
  constexpr std::array<std::string_view, kCollectives> kNames = {
      "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send", "receive"};
  return kNames.at(static_cast<std::size_t>(collective));
}

CollectiveCost::CollectiveCost(const DeviceProfile& card, ClusterProfile cluster)
    : cluster_(std::move(cluster)),
      compute_capability_major_(card.compute_capability_major),
      shortest_ns_(card.kernel_ns),
      copy_bytes_per_ns_(card.memory_bytes_per_second * card.memory_efficiency * kPerNanosecond) {}

/// Returns the rate at which a ring through all ranks moves data. Between nodes, NCCL makes a ring for each
/// network card, and so uses those of all ranks of a node at once.
double CollectiveCost::bus_bandwidth_of(GroupShape group) const {
  if (group.nodes <= 1) return cluster_.bus_bytes_per_second;
  const int cards = std::clamp(group.ranks / group.nodes, 1, cluster_.cards);
  return std::min(cluster_.bus_bytes_per_second, cards * cluster_.card_bytes_per_second);
}

double CollectiveCost::most_of_ll(GroupShape group) const {
  if (group.nodes == 2) return kMostOfLlOnTwoNodes;
  if (group.nodes > 2) return kMostOfLlOnMoreNodes;
  if (compute_capability_major_ >= 10) return kMostOfLl10;
  if (compute_capability_major_ == 9) return kMostOfLl9;
  return compute_capability_major_ == 8 ? kMostOfLl8 : kMostOfLlBefore8;
}

/// Returns what the protocols reach over a link of that bandwidth, but for trees.
CollectiveCost::Bandwidths CollectiveCost::bandwidths_over(double link, GroupShape group) const {
  return {std::min(most_of_ll(group), kRingLlShare * link), kLl128Share * link, link};
}

double CollectiveCost::ring_us(Collective collective, double bytes, GroupShape group) const {
  const int steps = steps_of(collective, group.ranks);
  const int network_steps =
      group.nodes <= 1
          ? 0
          : std::min(steps, collective == Collective::kAllReduce ? 2 * (group.nodes - 1) : group.nodes - 1);
  const bool has_one_each = group.ranks == group.nodes;
  const double bus = bus_bandwidth_of(group);
  const Bandwidths bandwidths = bandwidths_over(bus, group);
  const double traffic = bytes * traffic_of(collective, group.ranks);
  return shortest_us(cluster_.has_nvlink, [&](std::size_t protocol) {
    double step = step_in_node(kRing.at(protocol), cluster_.has_nvlink);
    if (group.nodes > 1) step = std::max(step, kNetworkOverheadUs.at(protocol));
    const double network_step = (has_one_each ? kTree : kRing).at(protocol).network_step;
    return kRing.at(protocol).base + (steps - network_steps) * step + network_steps * network_step +
           transfer_us(traffic, bandwidths.at(protocol));
  });
}

/// Returns the time of an all-reduce. Its data go up the tree and down again.
double CollectiveCost::tree_us(double bytes, GroupShape group) const {
  const int in_node = std::max(1, group.ranks / group.nodes) - 1;
  const double levels = std::floor(std::log2(group.nodes));
  const double bus = kTreeShare * bus_bandwidth_of(group);
  const Bandwidths bandwidths = {std::min(most_of_ll(group), kTreeLlShare * bus),
                                 (group.nodes <= 1 ? kTreeLl128ShareInNode : kTreeLl128Share) * bus, bus};
  return shortest_us(cluster_.has_nvlink, [&](std::size_t protocol) {
    const Latency& latency = kTree.at(protocol);
    return latency.base +
           2 * (in_node * step_in_node(latency, cluster_.has_nvlink) + levels * latency.network_step) +
           transfer_us(2 * bytes, bandwidths.at(protocol));
  });
}

Nanoseconds CollectiveCost::whole(double ns) const {
  return std::clamp(to_whole(std::ceil(ns)), shortest_ns_, std::max(shortest_ns_, kLongestMeasured));
}

Nanoseconds CollectiveCost::time_of(const Messages& messages, GroupShape group) const {
  const int ranks_of_node = std::max(1, group.ranks / group.nodes);
  const double network = cluster_.card_bytes_per_second * std::min(1.0, 1.0 * cluster_.cards / ranks_of_node);
  const Bandwidths in_node = bandwidths_over(cluster_.bus_bytes_per_second, group);
  const Bandwidths between_nodes = bandwidths_over(network, group);
  const double us = shortest_us(cluster_.has_nvlink, [&](std::size_t protocol) {
    const Latency& latency = kRing.at(protocol);
    return latency.base + messages.in_node * step_in_node(latency, cluster_.has_nvlink) +
           messages.between_nodes * latency.network_step +
           std::max(
               transfer_us(static_cast<double>(messages.in_node_bytes), in_node.at(protocol)),
               transfer_us(static_cast<double>(messages.between_nodes_bytes), between_nodes.at(protocol)));
  });
  return whole(us * kNsPerUs);
}

Nanoseconds CollectiveCost::time_of(Collective collective, Bytes bytes, GroupShape group) const {
  const auto size = static_cast<double>(bytes);
  if (group.ranks <= 1) return whole(2 * size / copy_bytes_per_ns_);
  if (const auto messages = messages_of(collective, bytes, group)) return time_of(*messages, group);
  double us = ring_us(collective, size, group);
  if (collective == Collective::kAllReduce) {
    us = std::min(us, tree_us(size, group));
    if (group.nodes <= 1 && cluster_.sharp_bytes_per_second > 0)
      us = std::min(us, kSharpUs + size * traffic_of(collective, group.ranks) /
                                       cluster_.sharp_bytes_per_second * kUsPerSecond);
  }
  return whole(us * kNsPerUs);
}

CollectiveRange CollectiveCost::range_of(GroupShape group) const {
  if (group.ranks <= 1) return {};
  return group.nodes <= 1 ? cluster_.node_range : cluster_.network_range;
}

}  // namespace offprof

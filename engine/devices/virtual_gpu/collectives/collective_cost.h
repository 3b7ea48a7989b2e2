#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/devices/virtual_gpu/collectives/cluster_profile.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "traces/base/units.h"

namespace offprof {

/// Operations between ranks, as NCCL has them.
enum class Collective : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSend,
  kReceive,
};

inline constexpr int kCollectives = 8;

/// Returns the name of a collective in reports: `all_reduce`.
std::string_view name_of(Collective collective);

/// Size of a communicator.
struct GroupShape {
  int ranks = 1;
  int nodes = 1;  ///< machines that the ranks are on

  /// Returns the number of ranks on a node, which the ranks fill one after another.
  int ranks_of_node() const { return (ranks + nodes - 1) / nodes; }

  bool operator==(const GroupShape&) const = default;
};

/// Messages that one rank sends to others at once, or receives.
struct Messages {
  int in_node = 0, between_nodes = 0;                ///< their number
  Bytes in_node_bytes = 0, between_nodes_bytes = 0;  ///< of all of them
};

/// Model of the durations of collectives, by the algorithms and protocols that NCCL chooses from:
///
///     time = min over algorithms and protocols of  latency + bytes / bandwidth
///
/// The figures are those with which NCCL itself chooses (src/graph/tuning.cc of NCCL 2.28;
/// torch/_inductor/comm_analysis.py repeats some). A ring of n ranks takes n - 1 steps, an all-reduce
/// 2 (n - 1); a tree, which all-reduces have, 2 (ranks of a node - 1) steps in the node and
/// 2 log2(nodes) between nodes. Each step takes a latency by the protocol (LL, LL128, Simple) and the link.
/// The share of the message that crosses a link is that of nccl-tests' bus bandwidth (doc/PERFORMANCE.md):
/// 2 (n - 1) / n for an all-reduce, (n - 1) / n for all-gather and reduce-scatter, 1 for the others. Sends
/// and receives that run at once, of which an all-to-all consists, are no ring: each message takes a step,
/// those between nodes go through the rank's own network card, and those within the node beside them. LL and
/// LL128 reach a part of the bandwidth of Simple, which the cluster has. Switches with SHARP have a third
/// algorithm for all-reduces within a node. Times are for ranking; nothing else depends on them.
class CollectiveCost {
 public:
  CollectiveCost(const DeviceProfile& card, ClusterProfile cluster);

  /// Returns the duration of one collective. `bytes` is the message as nccl-tests counts it: the whole buffer
  /// of all-reduce, broadcast and reduce, the gathered output of all-gather, the whole input of
  /// reduce-scatter and all-to-all, and the message of send and receive, which is between nodes if the group
  /// is on several.
  Nanoseconds time_of(Collective collective, Bytes bytes, GroupShape group) const;

  /// Returns the duration of messages of a rank of such a group.
  Nanoseconds time_of(const Messages& messages, GroupShape group) const;

  /// Returns the range of real over modelled durations in such a group.
  CollectiveRange range_of(GroupShape group) const;

 private:
  using Bandwidths = std::array<double, 3>;  ///< of LL, LL128 and Simple, in bytes per second

  double ring_us(Collective collective, double bytes, GroupShape group) const;
  double tree_us(double bytes, GroupShape group) const;
  Nanoseconds whole(double ns) const;
  Bandwidths bandwidths_over(double link, GroupShape group) const;
  double bus_bandwidth_of(GroupShape group) const;
  double most_of_ll(GroupShape group) const;

  ClusterProfile cluster_;
  int compute_capability_major_ = 0;
  Nanoseconds shortest_ns_ = 0;
  double copy_bytes_per_ns_ = 1;  ///< of a copy within the device's memory
};

}  // namespace offprof

#pragma once

#include <cstdint>
#include <string_view>

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

  bool operator==(const GroupShape&) const = default;
};

/// Model of the durations of collectives, by the rings and trees that NCCL builds:
///
///     time = start + steps * latency of a step + bytes over the slowest link / its bandwidth
///
/// Start and latencies are those of NCCL's low-latency protocol (src/graph/tuning.cc of NCCL, repeated in
/// torch/_inductor/comm_analysis.py): 6.6 us for a ring, 6.8 us for a tree; a step takes 0.6 us over NVLink,
/// 1.0 us over PCIe, and between nodes 2.7 us in a ring and 5 us in a tree. Between nodes each step within a
/// node takes at least 1 us. A ring of n ranks takes n - 1 steps, an all-reduce 2 (n - 1). The share of the
/// message that crosses a link is that of nccl-tests' bus bandwidth (doc/PERFORMANCE.md): 2 (n - 1) / n for
/// an all-reduce, (n - 1) / n for all-gather, reduce-scatter and all-to-all, 1 for the others. An all-reduce
/// between nodes takes the shorter of ring and tree.
///
/// Bandwidths are assumed by the generation of the card, see collective_cost.cpp: they are those that large
/// messages reach. Times are for ranking; nothing else depends on them.
class CollectiveCost {
 public:
  explicit CollectiveCost(const DeviceProfile& profile);

  /// Returns the duration of one collective. `bytes` is the message as nccl-tests counts it: the whole buffer
  /// of all-reduce, broadcast and reduce, the gathered output of all-gather, the whole input of
  /// reduce-scatter and all-to-all, and the message of send and receive.
  Nanoseconds time_of(Collective collective, Bytes bytes, GroupShape group) const;

 private:
  double bandwidth_of(GroupShape group) const;

  Nanoseconds shortest_ns_ = 0;
  double copy_bytes_per_ns_ = 1;  ///< of a copy within the device's memory
  double node_bytes_per_ns_ = 1;  ///< of a card, in one direction, to another card of its node
  double card_network_bytes_per_ns_ = 1, node_network_bytes_per_ns_ = 1;  ///< to other nodes
  double step_us_ = 1;                                                    ///< within a node
};

}  // namespace offprof

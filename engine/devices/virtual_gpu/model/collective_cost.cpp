#include "engine/devices/virtual_gpu/model/collective_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "traces/base/whole_number.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

// Latencies of the low-latency protocol in microseconds: see CollectiveCost.
constexpr double kRingStartUs = 6.6, kTreeStartUs = 6.8;
constexpr double kNvlinkStepUs = 0.6, kPcieStepUs = 1.0;
constexpr double kNetworkRingStepUs = 2.7, kNetworkTreeStepUs = 5.0;
constexpr double kLeastStepBetweenNodesUs = 1.0;

/// Links of a generation of cards with NVLink. Bandwidths are in bytes per second and direction.
struct Links {
  int capability_major;
  double nvlink;   ///< data sheet: half of the sum of both directions
  double network;  ///< one network card for each GPU, as in NVIDIA's own servers (DGX)
};

// A100: NVLink 3, 600 GB/s; eight HDR InfiniBand links of 200 Gb/s in a DGX A100. H100 and H200: NVLink 4,
// 900 GB/s; eight NDR links of 400 Gb/s in a DGX H100. B200: NVLink 5, 1800 GB/s; eight NDR links.
constexpr std::array<Links, 3> kLinks = {{{8, 300e9, 25e9}, {9, 450e9, 50e9}, {10, 900e9, 50e9}}};
// Compute capability 8.6 and 8.9 are cards for PCIe, without NVLink or with a bridge for two.
constexpr int kMinorWithNvlink = 0;

// Shares of these rates that large messages reach. nccl-tests' published runs on eight cards give a bus
// bandwidth of about 230 to 240 GB/s (A100) and 360 to 370 GB/s (H100, without in-network reduction).
constexpr double kLinkEfficiency = 0.8;
constexpr double kNetworkEfficiency = 0.92;
// Servers with PCIe cards: one network card of 100 Gb/s, assumed.
constexpr double kPcieNodeNetwork = 12.5e9;
// A tree's two halves share the bandwidth; NCCL's tuning.cc lowers it by this factor.
constexpr double kTreeBandwidthShare = 0.92;

constexpr double kPerNanosecond = 1e-9;
constexpr double kNsPerUs = 1e3;

const Links* links_of(const DeviceProfile& profile) {
  if (profile.compute_capability_minor != kMinorWithNvlink) return nullptr;
  const auto* found = std::ranges::find(kLinks, profile.compute_capability_major, &Links::capability_major);
  return found == kLinks.end() ? nullptr : found;
}

/// Returns the steps of a ring.
int steps_of(Collective collective, int ranks) {
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (ranks - 1);
    case Collective::kSend:
    case Collective::kReceive:
      return 1;
    default:
      return ranks - 1;
  }
}

/// Returns the share of the message that crosses each link.
double traffic_of(Collective collective, int ranks) {
  const double others = (ranks - 1.0) / ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * others;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return others;
    default:
      return 1;
  }
}

}  // namespace

std::string_view name_of(Collective collective) {
  constexpr std::array<std::string_view, kCollectives> kNames = {
      "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send", "receive"};
  return kNames.at(static_cast<std::size_t>(collective));
}

CollectiveCost::CollectiveCost(const DeviceProfile& profile)
    : shortest_ns_(profile.kernel_ns),
      copy_bytes_per_ns_(profile.memory_bytes_per_second * profile.memory_efficiency * kPerNanosecond) {
  if (const Links* links = links_of(profile)) {
    node_bytes_per_ns_ = links->nvlink * kLinkEfficiency * kPerNanosecond;
    card_network_bytes_per_ns_ = links->network * kNetworkEfficiency * kPerNanosecond;
    node_network_bytes_per_ns_ = node_bytes_per_ns_;
    step_us_ = kNvlinkStepUs;
    return;
  }
  const double pcie = std::min(profile.link.d2h.bytes_per_second, profile.link.h2d.bytes_per_second);
  node_bytes_per_ns_ = pcie * kLinkEfficiency * kPerNanosecond;
  card_network_bytes_per_ns_ = kPcieNodeNetwork * kNetworkEfficiency * kPerNanosecond;
  node_network_bytes_per_ns_ = card_network_bytes_per_ns_;
  step_us_ = kPcieStepUs;
}

/// Returns the rate at which a ring through all ranks moves data. Between nodes, NCCL makes a ring for each
/// network card, and so uses the cards of all ranks of a node at once.
double CollectiveCost::bandwidth_of(GroupShape group) const {
  if (group.nodes <= 1) return node_bytes_per_ns_;
  const int ranks_of_node = std::max(1, group.ranks / group.nodes);
  return std::min(node_network_bytes_per_ns_, ranks_of_node * card_network_bytes_per_ns_);
}

Nanoseconds CollectiveCost::time_of(Collective collective, Bytes bytes, GroupShape group) const {
  const auto size = static_cast<double>(bytes);
  const auto whole = [this](double ns) {
    return std::clamp(to_whole(std::ceil(ns)), shortest_ns_, std::max(shortest_ns_, kLongestMeasured));
  };
  if (group.ranks <= 1) return whole(2 * size / copy_bytes_per_ns_);
  const double transport = size * traffic_of(collective, group.ranks) / bandwidth_of(group);
  const int steps = steps_of(collective, group.ranks);
  if (group.nodes <= 1) return whole((kRingStartUs + steps * step_us_) * kNsPerUs + transport);

  const double step_in_node = std::max(step_us_, kLeastStepBetweenNodesUs);
  const int network_steps =
      std::min(steps, collective == Collective::kAllReduce ? 2 * group.nodes : group.nodes - 1);
  const double ring =
      kRingStartUs + (steps - network_steps) * step_in_node + network_steps * kNetworkRingStepUs;
  const double by_ring = ring * kNsPerUs + transport;
  if (collective != Collective::kAllReduce) return whole(by_ring);

  const int others_in_node = std::max(1, group.ranks / group.nodes) - 1;
  const double tree = kTreeStartUs + 2 * (others_in_node * step_in_node +
                                          std::ceil(std::log2(group.nodes)) * kNetworkTreeStepUs);
  return whole(std::min(by_ring, tree * kNsPerUs + transport / kTreeBandwidthShare));
}

}  // namespace offprof

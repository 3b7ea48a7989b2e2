#include "engine/devices/virtual_gpu/collectives/cluster_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "engine/devices/virtual_gpu/collectives/built_in_clusters.h"
#include "engine/devices/virtual_gpu/model/profile_document.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"

namespace offprof {
namespace {

using Field = ProfileField<ClusterProfile>;

constexpr std::array<std::string_view, 2> kLinks = {"pcie", "nvlink"};
constexpr int kMostCards = 1024;
// Limits of the factors of a range.
constexpr double kLeastFactor = 1e-3, kMostFactor = 1e3;
// Copies over PCI Express 4.0 x16 reach less, those over 5.0 more.
constexpr double kBetweenGenerations = 32e9;

Field rate(std::string path, double ClusterProfile::*member) {
  return {std::move(path),
          [=](const JsonValue& value, ClusterProfile& cluster) { cluster.*member = read_rate(value); }};
}

Field factor(std::string path, CollectiveRange ClusterProfile::*range, double CollectiveRange::*member) {
  return {std::move(path), [=](const JsonValue& value, ClusterProfile& cluster) {
            (cluster.*range).*member = read_between(value, kLeastFactor, kMostFactor);
          }};
}

std::vector<Field> all_fields() {
  using Cluster = ClusterProfile;
  return {{"schema", [](const JsonValue&, Cluster&) {}},
          text_field<Cluster>("name", &Cluster::name),
          {"node.link", [](const JsonValue& value,
                           Cluster& cluster) { cluster.has_nvlink = value.as_one_of(kLinks) == 1; }},
          rate("node.bus_bytes_per_second", &Cluster::bus_bytes_per_second),
          {"node.sharp_bytes_per_second",
           [](const JsonValue& value, Cluster& cluster) {
             if (value.as_amount() > 0) cluster.sharp_bytes_per_second = read_rate(value);
           }},
          rate("network.card_bytes_per_second", &Cluster::card_bytes_per_second),
          {"network.cards",
           [](const JsonValue& value, Cluster& cluster) {
             cluster.cards = static_cast<int>(value.as_integer(1, kMostCards));
           }},
          factor("range.node_low", &Cluster::node_range, &CollectiveRange::low),
          factor("range.node_high", &Cluster::node_range, &CollectiveRange::high),
          factor("range.network_low", &Cluster::network_range, &CollectiveRange::low),
          factor("range.network_high", &Cluster::network_range, &CollectiveRange::high),
          source_field<Cluster>("node"),
          source_field<Cluster>("network"),
          source_field<Cluster>("range")};
}

}  // namespace

std::vector<std::string> cluster_names() {
  return names_of(built_in_clusters());
}

ClusterProfile load_cluster(const std::string& name_or_path) {
  if (const auto found = find_profile(built_in_clusters(), name_or_path, "cluster"))
    return parse_cluster(found->text, found->where);
  const std::vector<std::string> names = cluster_names();
  const std::string guess = did_you_mean(name_or_path, names);
  throw input_error(
      fmt::format("no cluster is named '{}'; the clusters are {}", name_or_path, fmt::join(names, ", ")),
      guess.empty() ? "Give one of these, or a cluster file: --cluster ./my-cluster.json" : guess);
}

ClusterProfile parse_cluster(const std::string& text, const std::string& where) {
  auto cluster = read_profile<ClusterProfile>(
      all_fields(), {.schema = kClusterSchema, .what = "a cluster", .reference = "gpu-profiles.md"}, text,
      where);
  for (const CollectiveRange& range : {cluster.node_range, cluster.network_range})
    if (range.low > range.high)
      throw input_error(fmt::format("'{}': range: {} is more than {}", where, range.low, range.high));
  return cluster;
}

ClusterProfile usual_cluster(const DeviceProfile& card) {
  // Compute capability 8.6 and 8.9 are cards for PCI Express; of 8.0 and 9.0 there are both.
  const bool has_nvlink =
      card.compute_capability_minor == 0 && card.device_name.find("PCIe") == std::string::npos;
  if (has_nvlink && card.compute_capability_major == 8) return load_cluster("dgx-a100");
  if (has_nvlink && card.compute_capability_major == 9) return load_cluster("dgx-h100");
  if (has_nvlink && card.compute_capability_major >= 10) return load_cluster("dgx-b200");
  return load_cluster(card.link.h2d.bytes_per_second > kBetweenGenerations ? "pcie-gen5" : "pcie-gen4");
}

}  // namespace offprof

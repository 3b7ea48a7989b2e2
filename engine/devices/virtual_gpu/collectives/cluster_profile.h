#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/devices/virtual_gpu/model/profile.h"

namespace offprof {

/// Schema of cluster profiles: docs/reference/gpu-profiles.md.
inline constexpr std::string_view kClusterSchema = "offprof.cluster/1";

/// Range of real over modelled times of collectives. Nine of ten lie in it.
struct CollectiveRange {
  double low = 1, high = 1;

  bool operator==(const CollectiveRange&) const = default;
};

/// Links between the cards of a node and between nodes. docs/reference/gpu-profiles.md describes the file
/// format; the file itself names the sources of its figures.
struct ClusterProfile {
  std::string name;  ///< `dgx-h100`
  bool has_nvlink = false;
  /// Bus bandwidth that large messages reach within a node, as nccl-tests defines it.
  double bus_bytes_per_second = 1;
  /// The same of an all-reduce in the switches (NVLink SHARP); 0: they cannot do that.
  double sharp_bytes_per_second = 0;
  double card_bytes_per_second = 1;  ///< that a network card reaches in one direction
  int cards = 1;                     ///< network cards of a node
  CollectiveRange node_range, network_range;
};

/// Returns the names of the built-in cluster profiles, in printing order.
std::vector<std::string> cluster_names();

/// Returns the built-in cluster profile of that name, or reads the file at that path (a path ends in `.json`
/// or contains a `/`). Throws Error (input) if there is no such profile or file, or with the key and line
/// that are wrong.
ClusterProfile load_cluster(const std::string& name_or_path);

/// Parses the text of a cluster profile; `where` names it in errors.
ClusterProfile parse_cluster(const std::string& text, const std::string& where);

/// Returns the built-in profile of the servers that a card is commonly sold in.
ClusterProfile usual_cluster(const DeviceProfile& card);

}  // namespace offprof

#pragma once

#include <map>
#include <string>
#include <vector>

#include "traces/link.h"
#include "traces/units.h"

namespace offprof {

/// A GPU in figures: what the virtual GPU answers when it is asked what it is, and what its cost model goes
/// by. docs/virtual-gpu.md describes the file; the sources of the figures stand in it.
struct DeviceProfile {
  std::string name;         ///< `h200`: what --device virtual:NAME takes
  std::string device_name;  ///< `NVIDIA H200`
  Bytes memory_bytes = 0;   ///< what cudaMemGetInfo calls total
  int compute_capability_major = 0, compute_capability_minor = 0;
  int multiprocessors = 0;
  int max_threads_per_multiprocessor = 0, max_blocks_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  Bytes shared_memory_per_block_bytes = 0, shared_memory_per_block_optin_bytes = 0;
  Bytes shared_memory_per_multiprocessor_bytes = 0;
  Bytes l2_cache_bytes = 0;
  int memory_bus_bits = 0;
  double memory_bytes_per_second = 0;
  /// Dense peak by dtype as traces name it (`float32`, `bfloat16`, ...) and `tf32`.
  std::map<std::string, double> flops_per_second;
  /// Shares of the peaks that large kernels reach.
  double compute_efficiency = 1, memory_efficiency = 1;
  Nanoseconds kernel_ns = 0;  ///< the least that a kernel takes on the device
  Nanoseconds launch_ns = 0;  ///< what launching one takes of the host's time
  Link link;                  ///< to host memory that is pinned
};

/// The profile of plain `--device virtual`.
inline constexpr const char* kDefaultProfile = "h200";

/// Names of the built-in profiles, in printing order.
std::vector<std::string> profile_names();

/// The built-in profile of that name, or the one in that file (a path ends in `.json` or has a `/`). Throws
/// Error (input): no such profile or file, or which key of it is wrong, and on which line.
DeviceProfile load_profile(const std::string& name_or_path);

/// Reads a profile's text; `where` names it in errors.
DeviceProfile parse_profile(const std::string& text, const std::string& where);

}  // namespace offprof

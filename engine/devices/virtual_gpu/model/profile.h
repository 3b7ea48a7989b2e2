#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/devices/virtual_gpu/model/host_times.h"
#include "traces/base/units.h"
#include "traces/model/link.h"

namespace offprof {

inline constexpr double kNanosecondsPerSecond = 1e9;

/// Figures of a GPU: the properties that the virtual GPU reports and the parameters of its cost model.
/// docs/reference/gpu-profiles.md describes the file format; the file itself names the sources of its
/// figures.
struct DeviceProfile {
  std::string name;         ///< `h200`: the NAME of --device virtual:NAME
  std::string device_name;  ///< `NVIDIA H200`
  Bytes memory_bytes = 0;   ///< the total that cudaMemGetInfo reports
  /// Memory that a process uses beside PyTorch's allocator: CUDA's context and the code of kernels.
  Bytes context_bytes = 0;
  int compute_capability_major = 0, compute_capability_minor = 0;
  int multiprocessors = 0;
  int max_threads_per_multiprocessor = 0, max_blocks_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int clock_khz = 0;  ///< highest clock of the multiprocessors
  Bytes shared_memory_per_block_bytes = 0, shared_memory_per_block_optin_bytes = 0;
  Bytes shared_memory_per_multiprocessor_bytes = 0;
  Bytes l2_cache_bytes = 0;
  int memory_bus_bits = 0;
  int memory_clock_khz = 0;  ///< highest clock of the memory; two transfers a cycle
  double memory_bytes_per_second = 0;
  Nanoseconds memory_latency_ns = 1;  ///< of a load that no cache answers
  /// Dense peak rate by dtype, named as in traces (`float32`, `bfloat16`, ...), and `tf32`.
  std::map<std::string, double> flops_per_second;
  /// Shares of the peak rates that large kernels reach.
  double compute_efficiency = 1, memory_efficiency = 1;
  /// Share of the 16-bit peak that attention kernels reach forward, for long sequences and heads of width
  /// 128.
  double attention_efficiency = 1;
  /// Share of the clock of short runs that the power limit leaves, or a clock that is locked, while products
  /// run for seconds. Kernels that the memory bounds do not depend on it.
  double sustained_clock = 1;
  /// Elements that a multiprocessor computes in a cycle if threads load and store them one by one.
  double elements_per_cycle = 1;
  Nanoseconds kernel_ns = 0;  ///< shortest time of a kernel on the device
  Nanoseconds launch_ns = 0;  ///< host time of a kernel launch
  HostTimes host;             ///< for operators
  Link link;  ///< to pinned host memory; compute_ns_per_byte follows from the memory's figures

  /// Returns the elements that all multiprocessors load and store one by one in a second.
  double elements_per_second() const {
    return elements_per_cycle * multiprocessors * clock_khz * 1e3 * sustained_clock;
  }
};

/// Name of the profile that plain `--device virtual` uses.
inline constexpr const char* kDefaultProfile = "h200";

/// Returns the names of the built-in profiles, in printing order.
std::vector<std::string> profile_names();

/// Returns the built-in profile of that name, or reads the profile file at that path (a path ends in `.json`
/// or contains a `/`). Throws Error (input) if there is no such profile or file, or with the key and line
/// that are wrong.
DeviceProfile load_profile(const std::string& name_or_path);

/// Parses the text of a profile; `where` names it in errors.
DeviceProfile parse_profile(const std::string& text, const std::string& where);

}  // namespace offprof

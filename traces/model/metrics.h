#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Figures of a training step, measured by `run` or predicted by `simulate`. All outputs use the same keys in
/// this order. A figure that does not apply to the device is absent.
///
///   device_peak_bytes       peak of the live device bytes in the whole step, as requested
///   device_resident_bytes   live bytes at the start of the step: parameters, optimizer state, inputs
///   device_allocated_peak_bytes, device_reserved_peak_bytes   peaks of a caching allocator (CUDA)
///   host_peak_bytes         peak of the host bytes that offloaded tensors hold, as requested
///   host_reserved_bytes     pinned host memory reserved for them, in use or not; only measured on a GPU
///   disk_peak_bytes         peak of the disk bytes that offloaded tensors hold; this and the next two
///                           disk figures exist if there is a disk, even if only parameters use it
///   step_time_ns            wall time of a step
///   compute_ns              step_time_ns - exposed_ns - launch_gap_ns
///   d2h_bytes, h2d_bytes    bytes copied in a step
///   disk_write_bytes, disk_read_bytes   bytes written to the disk and read from it in a step
///   d2h_busy_ns, h2d_busy_ns   time with a running copy in that direction
///   exposed_ns              stall time: the compute stream waits for copies
///   launch_gap_ns           the compute stream is idle because the host is behind; only on a device
///                           that computes beside the host, and only if it is known
///   overlap_ratio           1 - exposed_ns / (d2h_busy_ns + h2d_busy_ns), at least 0; absent without copies
struct Metrics {
  std::optional<Bytes> device_peak_bytes, device_resident_bytes;
  std::optional<Bytes> device_allocated_peak_bytes, device_reserved_peak_bytes;
  std::optional<Bytes> host_peak_bytes, host_reserved_bytes, disk_peak_bytes;
  std::optional<Nanoseconds> step_time_ns, compute_ns;
  std::optional<Bytes> d2h_bytes, h2d_bytes, disk_write_bytes, disk_read_bytes;
  std::optional<Nanoseconds> d2h_busy_ns, h2d_busy_ns, exposed_ns, launch_gap_ns;
  std::optional<double> overlap_ratio;
  /// Spread over the measured steps, keyed `step_time_ns_min`, `step_time_ns_max`, ...; empty in a
  /// prediction.
  std::map<std::string, std::int64_t> spread;

  bool operator==(const Metrics&) const = default;
};

/// Returns the device memory that a step needs: the bytes that the caching allocator reserves, or, without
/// such an allocator, the peak. 0 if neither is known.
Bytes device_bytes_taken(const Metrics& metrics);

/// Unit of a metric: bytes, nanoseconds, or a plain ratio.
enum class MetricUnit { kBytes, kNanoseconds, kRatio };

/// Key of Metrics: its name, its unit, and functions to read and write its value. Ratios are not scaled.
struct MetricKey {
  std::string_view name;
  MetricUnit unit;
  bool is_predicted;  ///< a replay computes it too; the others are only measured
  std::optional<double> (*get)(const Metrics&);
  void (*set)(Metrics&, double);
};

/// Returns all keys in printing order.
const std::vector<MetricKey>& metric_keys();

/// Returns the key of that name, or nullptr.
const MetricKey* find_metric(std::string_view name);

/// Formats a value of that unit for a person: `1.50 MiB`, `3.14 ms`, `0.930`.
std::string format_metric(MetricUnit unit, double value);

/// Computes the overlap_ratio of Metrics; nullopt without copies.
std::optional<double> overlap_ratio(Nanoseconds exposed, Nanoseconds d2h_busy, Nanoseconds h2d_busy);

}  // namespace offprof

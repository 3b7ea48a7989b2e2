#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// The figures of a training step, measured by `run` or predicted by `simulate`: the same keys everywhere, in
/// this order. A figure that the device has no notion of is absent.
///
///   device_peak_bytes       highest count of live device bytes, as requested, whole step
///   device_resident_bytes   live when the step begins: weights, optimiser state, inputs
///   device_allocated_peak_bytes, device_reserved_peak_bytes   of a caching allocator (CUDA)
///   host_peak_bytes         highest count of host bytes held by offloaded tensors, as requested
///   host_reserved_bytes     pinned host memory held for that, in use or not; measured on a GPU alone
///   disk_peak_bytes         highest count of bytes that offloaded tensors hold on a disk; it and the next
///                           two where there is one, be it for a GPU's weights alone
///   step_time_ns            wall time of a step
///   compute_ns              step_time_ns - exposed_ns - launch_gap_ns
///   d2h_bytes, h2d_bytes    copied in a step
///   disk_write_bytes, disk_read_bytes   written to the disk and read from it in a step
///   d2h_busy_ns, h2d_busy_ns   a copy was running in that direction
///   exposed_ns              the compute stream stood waiting for copies
///   launch_gap_ns           the compute stream had nothing to do yet, the host being behind;
///                           of a device that computes beside the host, where that is
///                           known
///   overlap_ratio           1 - exposed_ns / (d2h_busy_ns + h2d_busy_ns), not below 0; absent without copies
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

/// What of a device a step takes: what the caching allocator reserves, where there is one, else the peak. 0
/// where neither is known.
Bytes device_bytes_taken(const Metrics& metrics);

/// How a metric reads: bytes, nanoseconds, or a plain ratio.
enum class MetricUnit { kBytes, kNanoseconds, kRatio };

/// One key of Metrics: its name, its unit, and how to read and write it. Ratios are read as they are.
struct MetricKey {
  std::string_view name;
  MetricUnit unit;
  std::optional<double> (*get)(const Metrics&);
  void (*set)(Metrics&, double);
};

/// Every key, in printing order.
const std::vector<MetricKey>& metric_keys();

/// The key of that name, or nullptr.
const MetricKey* find_metric(std::string_view name);

/// A value of that unit for a person: `1.50 MiB`, `3.14 ms`, `0.930`.
std::string format_metric(MetricUnit unit, double value);

/// The ratio of the Metrics comment, from its parts; absent without copies.
std::optional<double> overlap_ratio(Nanoseconds exposed, Nanoseconds d2h_busy, Nanoseconds h2d_busy);

}  // namespace offprof

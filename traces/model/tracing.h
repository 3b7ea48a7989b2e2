#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/calibration.h"

namespace offprof {

/// Size from which a copy should reach the full speed of the link.
inline constexpr Bytes kLargeCopy = 16 * kMiB;

/// Copies of one direction over the link in one step, by the GPU's own clock. A copy belongs to the step in
/// which it begins, and rates use its full duration, even if the step ends before it.
struct LinkFigures {
  Nanoseconds busy_ns = 0;  ///< time in the step with a running copy in that direction
  Bytes bytes = 0;          ///< bytes of the step's copies
  Nanoseconds copies_ns = 0;
  Bytes large_bytes = 0;  ///< bytes of the copies of at least kLargeCopy
  Nanoseconds large_copies_ns = 0;

  bool operator==(const LinkFigures&) const = default;
};

/// Activity of a GPU in one step, by its own clock. S is the step. C is the union of the times with a running
/// kernel, memset or copy within the device's memory. D and H are the unions for copies out and in. |X| is
/// the length of X. Then
///
///   compute_ns    = |S and C|
///   busy_ns       = |S and D|, |S and H|
///   exposed_ns    = |S and (D or H) without C|
///   idle_ns       = |S without C, D and H|
///   overlap_ratio = 1 - exposed_ns / (d2h.busy_ns + h2d.busy_ns), not below 0; absent without copies
///
/// so that compute_ns + exposed_ns + idle_ns is the length of the step.
struct GpuFigures {
  Nanoseconds compute_ns = 0;
  Nanoseconds exposed_ns = 0;
  Nanoseconds idle_ns = 0;
  LinkFigures d2h{}, h2d{};

  std::optional<double> overlap_ratio() const;
  bool operator==(const GpuFigures&) const = default;
};

/// Duration of the same steps untraced and traced: by the GPU's tracer, by the recorder of operators,
/// allocations and commands, and by both.
struct TracingCost {
  MeasuredQuartiles untraced;
  MeasuredQuartiles streams;     ///< the tracer records kernels, copies and memsets
  MeasuredQuartiles tracer;      ///< the tracer records everything that it can; the recorder is off
  MeasuredQuartiles recorder;    ///< only the recorder, whose marks are events on the compute stream
  MeasuredQuartiles everything;  ///< both, as for a trace

  bool operator==(const TracingCost&) const = default;
};

/// Returns the share of the untraced step that tracing adds: 0.012 is 1.2 %. Noise can make it negative. 0 if
/// nothing was measured.
double relative_cost(const MeasuredQuartiles& untraced, const MeasuredQuartiles& traced);

/// Recording of a GPU's activity: the tool, its cost, its losses and the resulting figures.
struct Tracing {
  std::string tool;                     ///< `CUPTI`
  std::string version;                  ///< `13.0`
  std::int64_t dropped_records = 0;     ///< lost because buffers ran out
  std::int64_t untimed_records = 0;     ///< left out because the tool had no times for them
  std::int64_t unreadable_buffers = 0;  ///< buffers whose remaining records are left out
  Bytes host_bytes = 0;                 ///< host memory of the buffers
  std::optional<Bytes> device_bytes{};  ///< device memory of the tracer; nullopt: not measured
  std::optional<TracingCost> cost{};    ///< nullopt: not measured
  std::vector<GpuFigures> steps{};      ///< the traced steps in their order

  /// Returns true if records are missing; times from the records may then be too short.
  bool lost_records() const { return dropped_records + untimed_records + unreadable_buffers > 0; }
  bool operator==(const Tracing&) const = default;
};

/// Describes the losses: `12 records dropped, 3 without times`; for a complete trace `0 records dropped`.
std::string losses_text(const Tracing& tracing);

/// Returns the rate of the large copies of that direction over all traced steps, in bytes per second; nullopt
/// if there were none.
std::optional<double> achieved_rate(const Tracing& tracing, LinkFigures GpuFigures::*direction);

}  // namespace offprof

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/calibration.h"
#include "traces/units.h"

namespace offprof {

/// From so many bytes on a copy should reach the link's full speed.
inline constexpr Bytes kLargeCopy = 16 * kMiB;

/// What copies of one direction over the link came to in a step, by the GPU's own clock. Copies belong to the
/// step that they began in, and their rates go by all of their time, whether or not the step ended before.
struct LinkFigures {
  Nanoseconds busy_ns = 0;  ///< within the step, some copy of that direction was running
  Bytes bytes = 0;          ///< of its copies
  Nanoseconds copies_ns = 0;
  Bytes large_bytes = 0;  ///< of those of at least kLargeCopy
  Nanoseconds large_copies_ns = 0;

  bool operator==(const LinkFigures&) const = default;
};

/// What a GPU did in one step, by its own clock. With S the step, C the union of the times in which a kernel,
/// a set or a copy within the device's memory ran, D and H those of copies out and in, and |X| the length of
/// X:
///
///   compute_ns    = |S and C|
///   busy_ns       = |S and D|, |S and H|
///   exposed_ns    = |S and (D or H) without C|
///   idle_ns       = |S without C, D and H|
///   overlap_ratio = 1 - exposed_ns / (d2h.busy_ns + h2d.busy_ns), not below 0; absent without copies
///
/// so that compute_ns + exposed_ns + idle_ns is the step's length.
struct GpuFigures {
  Nanoseconds compute_ns = 0;
  Nanoseconds exposed_ns = 0;
  Nanoseconds idle_ns = 0;
  LinkFigures d2h{}, h2d{};

  std::optional<double> overlap_ratio() const;
  bool operator==(const GpuFigures&) const = default;
};

/// How long the same steps take untraced and traced, by the GPU's tracer and by the recorder of operators,
/// allocations and commands, each alone and both.
struct TracingCost {
  Measured untraced;
  Measured streams;     ///< the tracer records kernels, copies and sets
  Measured tracer;      ///< the tracer records all that it can, and nobody else anything
  Measured recorder;    ///< the recorder alone, whose marks are events on the compute stream
  Measured everything;  ///< both, as for a trace

  bool operator==(const TracingCost&) const = default;
};

/// What tracing adds to a step, as a share of the untraced one: 0.012 is 1.2 %. Noise can make it negative; 0
/// where nothing was measured.
double relative_cost(const Measured& untraced, const Measured& traced);

/// How what a GPU did was recorded, what that cost, and what came of it.
struct Tracing {
  std::string tool;                     ///< `CUPTI`
  std::string version;                  ///< `13.0`
  std::int64_t dropped_records = 0;     ///< for want of buffers
  std::int64_t untimed_records = 0;     ///< that the tool had no times for, so left out
  std::int64_t unreadable_buffers = 0;  ///< whose rest is left out
  Bytes host_bytes = 0;                 ///< of host memory, for buffers
  std::optional<Bytes> device_bytes{};  ///< of the device's memory; nullopt: not measured
  std::optional<TracingCost> cost{};    ///< nullopt: not measured
  std::vector<GpuFigures> steps{};      ///< traced ones, in their order

  /// Something that happened is missing: times made of the records may be too short.
  bool lost_records() const { return dropped_records + untimed_records + unreadable_buffers > 0; }
  bool operator==(const Tracing&) const = default;
};

/// `12 records dropped, 3 without times`; of a trace that lacks none `0 records dropped`.
std::string losses_text(const Tracing& tracing);

/// What large copies of that direction reached over all traced steps, in bytes a second; nullopt: there were
/// none.
std::optional<double> achieved_rate(const Tracing& tracing, LinkFigures GpuFigures::*direction);

}  // namespace offprof

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/link.h"

namespace offprof {

/// Upper limit for every time in a trace: thirteen days.
inline constexpr Nanoseconds kLongestMeasured = Nanoseconds{1} << 50;

/// Median and quartiles of a repeated measurement. The median of an even number of values is the mean of the
/// two middle values.
struct MeasuredQuartiles {
  Nanoseconds median_ns = 0;
  Nanoseconds low_ns = 0, high_ns = 0;

  /// Distance between the quartiles divided by the median: 0.1 means ten percent. 0 if the median is 0.
  double relative_spread() const;
  bool operator==(const MeasuredQuartiles&) const = default;
};

/// Computes the median and the quartiles of `values`, which must not be empty.
MeasuredQuartiles summarize_measured(std::vector<Nanoseconds> values);

/// Returns only the median of `values`, which must not be empty.
inline Nanoseconds median_of(std::vector<Nanoseconds> values) {
  return summarize_measured(std::move(values)).median_ns;
}

/// Measured duration of copies of one size.
struct CopyTiming {
  Bytes bytes = 0;
  MeasuredQuartiles duration;
  bool operator==(const CopyTiming&) const = default;
};

/// Compute time lost after a stall of the given length: the caches no longer hold the data that compute left
/// there.
struct StandstillTiming {
  Nanoseconds stood_ns = 0;
  MeasuredQuartiles lost;
  bool operator==(const StandstillTiming&) const = default;
};

/// Duration of one phase of a step that offloads nothing, from its start to the start of the next phase.
struct PhaseTiming {
  std::string phase;  ///< `forward`, `backward`, `optimizer`
  MeasuredQuartiles duration;
  bool operator==(const PhaseTiming&) const = default;
};

/// Costs of offloading that `run` measured in its own process, beside the copy time itself. Lists are sorted
/// by rising bytes or time.
struct Calibration {
  std::vector<CopyTiming> d2h, h2d;               ///< single copies on an otherwise idle machine
  std::vector<CopyTiming> disk_write, disk_read;  ///< the same for the disk, if there is one
  /// Time per MiB, beyond the latency, in a step that offloads everything: caches and memory pages are in the
  /// state in which steps leave them. Median 0: not measured.
  MeasuredQuartiles copy_out_per_mib, copy_in_per_mib;
  /// From the end of the request of a copy on an idle stream to the start of the copy.
  MeasuredQuartiles start;
  // Host time of the following operations. On the `host` device it is also the model's compute time.
  MeasuredQuartiles command;  ///< requests a copy
  MeasuredQuartiles event;    ///< waits for a copy that has finished
  MeasuredQuartiles hook;     ///< pack, unpack or release of a saved tensor that stays, each
  std::vector<StandstillTiming> standstills;
  MeasuredQuartiles slowdown_per_mib;  ///< extra compute time per MiB that is copied at the same time
  MeasuredQuartiles
      reload_per_mib;      ///< extra compute time per MiB that was copied in, because it is in no cache
  MeasuredQuartiles step;  ///< a step that offloads and records nothing
  std::vector<PhaseTiming> phases{};  ///< phases of such a step in their order; empty: not known
  /// Time in which a cache line moves from the core that computes to the core that copies and back, if each
  /// has its own core. Median 0: not known.
  MeasuredQuartiles core_to_core;

  bool operator==(const Calibration&) const = default;
};

/// Returns true if two values of Calibration::core_to_core mean a similar distance between cores. Cores that
/// share a cache take 50 to 100 ns, other cores at least three times as long. The cores of a virtual machine
/// may change from one to the other within a minute. 0 means not known and matches any value.
bool are_as_far_apart(Nanoseconds a, Nanoseconds b);

/// Longest core-to-core time of cores that share a cache.
inline constexpr Nanoseconds kFurthestOverACache = 200;

/// Costs that a replay adds to compute and copies. All 0: nothing is known, or nothing is to be added.
struct EngineCosts {
  Nanoseconds hook_ns = 0;
  Nanoseconds event_ns = 0;
  double slowdown_ns_per_byte = 0;  ///< extra compute time while copies run
  double reload_ns_per_byte = 0;    ///< extra compute time for data that was copied in
  /// Points of a curve from the length of a stall to the compute time lost after it (see StandstillTiming).
  /// The curve rises from (0, 0), is linear between points and constant beyond the last.
  struct Standstill {
    Nanoseconds stood_ns = 0;
    Nanoseconds lost_ns = 0;
  };
  std::vector<Standstill> standstills{};

  Nanoseconds lost_after(Nanoseconds stood_ns) const;
};

/// Returns the medians of the calibration. Slow-down and reload are small differences of long times, so noise
/// alone can look like a cost. They are therefore shrunk towards 0 like positive-part James-Stein estimates:
/// by the square of half the quartile distance over the median, and to 0 if that half is as large as the
/// median (James, Stein 1961, "Estimation with quadratic loss"; Baranchik 1964). The lost time never falls as
/// stalls become longer.
EngineCosts costs_of(const Calibration& calibration);

/// Returns the calibrated link: the latency of each direction, its bandwidth in a step (or, if that is not
/// known, the bandwidth of single copies), the cost of a copy request, and the start delay on an idle stream.
Link link_of(const Calibration& calibration);

}  // namespace offprof

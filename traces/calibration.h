#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/link.h"
#include "traces/units.h"

namespace offprof {

/// No figure of a trace is longer: thirteen days.
inline constexpr Nanoseconds kLongestMeasured = Nanoseconds{1} << 50;

/// A figure measured several times: the median (of an even number the mean of the two in the middle) and the
/// quartiles around it.
struct Measured {
  Nanoseconds median_ns = 0;
  Nanoseconds low_ns = 0, high_ns = 0;

  /// The distance of the quartiles in medians, 0.1 being ten percent; 0 where the median is 0.
  double relative_spread() const;
  bool operator==(const Measured&) const = default;
};

/// `values` is not empty.
Measured summarize_measured(std::vector<Nanoseconds> values);

/// Its median alone.
inline Nanoseconds median_of(std::vector<Nanoseconds> values) {
  return summarize_measured(std::move(values)).median_ns;
}

/// Copies of one size.
struct CopyTiming {
  Bytes bytes = 0;
  Measured duration;
  bool operator==(const CopyTiming&) const = default;
};

/// What compute that stood still for so long takes longer afterwards: what it left in the caches has gone.
struct StandstillTiming {
  Nanoseconds stood_ns = 0;
  Measured lost;
  bool operator==(const StandstillTiming&) const = default;
};

/// A phase of a step with nothing offloaded, from its beginning to that of the next.
struct PhaseTiming {
  std::string phase;  ///< `forward`, `backward`, `optimizer`
  Measured duration;
  bool operator==(const PhaseTiming&) const = default;
};

/// What `run` measured, in its own process, of what offloading costs beside the copies' own time. Lists are
/// in rising order of bytes or time.
struct Calibration {
  std::vector<CopyTiming> d2h, h2d;               ///< one at a time, with nothing beside them
  std::vector<CopyTiming> disk_write, disk_read;  ///< likewise of the disk, where there is one
  /// What a MiB takes in a step that offloads everything, beyond the latency: caches and pages of memory are
  /// there as steps leave them. Median 0: not measured.
  Measured copy_out_per_mib, copy_in_per_mib;
  Measured start;  ///< from asking for a copy on an idle stream to its beginning
  /// Of the host's time, which on `host` is the program's compute too:
  Measured command;  ///< to ask for a copy
  Measured event;    ///< to wait for a copy that is done
  Measured hook;     ///< for a saved tensor that stays: each pack, unpack and release
  std::vector<StandstillTiming> standstills;
  Measured slowdown_per_mib;  ///< what compute takes longer for each MiB that is copied beside it
  Measured reload_per_mib;    ///< what compute takes longer for each MiB that came back: it is in no cache
  Measured step;              ///< a step with nothing offloaded, nothing recorded
  std::vector<PhaseTiming> phases{};  ///< of such steps, in their order; empty: not known
  /// What a cache line took from the core that computed to the one that copied and back, where each had one.
  /// Median 0: not known.
  Measured core_to_core;

  bool operator==(const Calibration&) const = default;
};

/// Whether cores that far apart, by Calibration::core_to_core, are as far apart as others. What shares a
/// cache takes 50 to 100 ns, what does not three times as long or more; the cores of a virtual machine may do
/// the one now and the other a minute later. 0 is not known, and like any.
bool are_as_far_apart(Nanoseconds a, Nanoseconds b);

/// Cores further apart than that share no cache.
inline constexpr Nanoseconds kFurthestOverACache = 200;

/// What a replay adds to compute and copies. All 0: nothing is known, or nothing is to be added.
struct EngineCosts {
  Nanoseconds hook_ns = 0;
  Nanoseconds event_ns = 0;
  double slowdown_ns_per_byte = 0;  ///< of compute beside copies
  double reload_ns_per_byte = 0;    ///< of compute with what was copied in
  /// See StandstillTiming; rising, linear between, constant beyond the last. From (0, 0).
  struct Standstill {
    Nanoseconds stood_ns = 0;
    Nanoseconds lost_ns = 0;
  };
  std::vector<Standstill> standstills{};

  Nanoseconds lost_after(Nanoseconds stood_ns) const;
};

/// The medians. Slow-down and reload are small differences of long times, and what noise makes of nothing
/// looks like a cost too, so they are shrunk towards 0 as positive-part James-Stein estimates are: by the
/// square of half the quartiles' distance over the median, to nothing where that half is as large as the
/// median (James, Stein 1961, "Estimation with quadratic loss"; Baranchik 1964). What stood longer never
/// loses less.
EngineCosts costs_of(const Calibration& calibration);

/// The link as calibrated: the latency of each direction, its bandwidth in a step or else that of single
/// copies, what asking for a copy costs, and how long an idle stream takes to begin.
Link link_of(const Calibration& calibration);

}  // namespace offprof

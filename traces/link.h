#pragma once

#include "traces/units.h"

namespace offprof {

/// What one copy direction costs: `latency + bytes / bandwidth`, one copy at a time, first come first served.
struct LinkDirection {
  double bytes_per_second = 0;
  Nanoseconds latency_ns = 0;
  Nanoseconds start_ns = 0;  ///< from asking for a copy to its beginning, where nothing is before it

  Nanoseconds duration(Bytes bytes) const {
    return latency_ns + static_cast<Nanoseconds>(1e9 * static_cast<double>(bytes) / bytes_per_second);
  }
  bool operator==(const LinkDirection&) const = default;
};

/// The link between device and host memory.
struct Link {
  LinkDirection d2h;
  LinkDirection h2d;
  /// What asking for a copy takes of the host's time; the copy begins after it.
  Nanoseconds launch_ns = 0;

  bool operator==(const Link&) const = default;
};

}  // namespace offprof

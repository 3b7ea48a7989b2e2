#pragma once

#include <algorithm>

#include "traces/base/units.h"

namespace offprof {

/// Work of a model between two points on a device that computes beside the host, mostly kernel launches on
/// the compute stream. It determines when the host and the stream finish it, for any start times. With the
/// clocks h (host) and s (stream) before,
///
///     h' = max(h + host_ns, s + wait_ns)        s' = max(h + path_ns, s + stream_ns)
///
/// A kernel that takes l to launch and d to run is {l, d, l + d} and keeps the stream busy for d. A sequence
/// of such steps is again one: a matrix product in which max adds and + multiplies (Baccelli, Cohen, Olsder,
/// Quadrat 1992, "Synchronization and Linearity").
struct Work {
  /// The host does not wait for the stream.
  static constexpr Nanoseconds kNoWait = -(Nanoseconds{1} << 60);

  Nanoseconds host_ns = 0;        ///< time that the host is busy
  Nanoseconds stream_ns = 0;      ///< time that the stream is busy, from when it is free
  Nanoseconds path_ns = 0;        ///< shortest time from the start on the host to the end on the stream
  Nanoseconds wait_ns = kNoWait;  ///< shortest time from when the stream is free to the end on the host

  Nanoseconds busy_ns = 0;  ///< part of these times in which the stream has work

  bool waits() const { return wait_ns >= 0; }
  bool operator==(const Work&) const = default;
};

/// Returns the work of `first` followed by `second`.
inline Work then(const Work& first, const Work& second) {
  const auto wait = std::max(second.host_ns + first.wait_ns, second.wait_ns + first.stream_ns);
  return {std::max(second.host_ns + first.host_ns, second.wait_ns + first.path_ns),
          std::max(second.path_ns + first.wait_ns, second.stream_ns + first.stream_ns),
          std::max(second.path_ns + first.host_ns, second.stream_ns + first.path_ns),
          wait < 0 ? Work::kNoWait : wait, first.busy_ns + second.busy_ns};
}

}  // namespace offprof

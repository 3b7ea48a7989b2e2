#pragma once

#include <algorithm>

#include "traces/units.h"

namespace offprof {

/// What a program did between two points on a device that computes beside the host: launched kernels on the
/// compute stream, mostly. It says when host and stream are done with it, whenever they came to it: with
/// clocks h and s before,
///
///     h' = max(h + host_ns, s + wait_ns)        s' = max(h + path_ns, s + stream_ns)
///
/// A kernel that takes l to launch and d to run is {l, d, l + d}, and keeps the stream busy for d. Any
/// sequence of such steps is one again: a product of matrices where max adds and + multiplies (Baccelli,
/// Cohen, Olsder, Quadrat 1992, "Synchronization and Linearity").
struct Work {
  /// The host does not wait for the stream.
  static constexpr Nanoseconds kNoWait = -(Nanoseconds{1} << 60);

  Nanoseconds host_ns = 0;        ///< that the host is busy
  Nanoseconds stream_ns = 0;      ///< that the stream is, from when it is free
  Nanoseconds path_ns = 0;        ///< from when the host begins to when the stream is done at the earliest
  Nanoseconds wait_ns = kNoWait;  ///< from when the stream is free to when the host is done at the earliest

  Nanoseconds busy_ns = 0;  ///< of these, that the stream had something to do

  bool waits() const { return wait_ns >= 0; }
  bool operator==(const Work&) const = default;
};

/// `second` after `first`.
inline Work then(const Work& first, const Work& second) {
  const auto wait = std::max(second.host_ns + first.wait_ns, second.wait_ns + first.stream_ns);
  return {std::max(second.host_ns + first.host_ns, second.wait_ns + first.path_ns),
          std::max(second.path_ns + first.wait_ns, second.stream_ns + first.stream_ns),
          std::max(second.path_ns + first.host_ns, second.stream_ns + first.path_ns),
          wait < 0 ? Work::kNoWait : wait, first.busy_ns + second.busy_ns};
}

}  // namespace offprof

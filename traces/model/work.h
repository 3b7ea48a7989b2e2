#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

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

/// A command that a program gives beside the work of its compute stream: to other streams, such as those of
/// collectives, a copy over the link, or a wait. Like Work, it has a meaning for any times at which the host
/// and the streams come to it: a kernel begins when the host has launched it and its stream is free, and a
/// recorded point is reached when its stream has done the work before.
struct StreamCommand {
  enum class Kind : std::uint8_t {
    kKernel,      ///< `stream`, not the compute stream, runs something for `duration_ns`
    kCollective,  ///< the same, and it is a collective
    kCopyOut,     ///< `stream`, which may be the compute stream, copies `bytes` to the host over the link
    kCopyIn,      ///< the same, to the device
    kRecord,      ///< the point `point` is the end of the work that `stream` has so far
    kWait,        ///< later work of `stream` waits for the point `point`
    kHostWait,    ///< the host waits for the point `point`
    kDeviceWait,  ///< the host waits for all streams, also those of the engine
  };

  Kind kind = Kind::kKernel;
  std::int32_t stream = 0;      ///< 0: the compute stream. Waits of the host: 0
  std::int32_t point = -1;      ///< of kRecord and the waits: which record of the step, counted from 0
  Nanoseconds duration_ns = 0;  ///< of kKernel and kCollective
  Bytes bytes = 0;              ///< of copies
  std::int32_t event = 0;       ///< index in StepProgram::events: the next event
  Work before{};  ///< work given to the host and the compute stream since the last command, or the last event

  bool runs_kernel() const { return kind == Kind::kKernel || kind == Kind::kCollective; }
  bool copies() const { return kind == Kind::kCopyOut || kind == Kind::kCopyIn; }
  /// Returns true if copies of the engine may delay it: it copies over the same link, or waits for all
  /// streams.
  bool meets_copies() const { return copies() || kind == Kind::kDeviceWait; }
  bool has_point() const { return kind == Kind::kRecord || kind == Kind::kWait || kind == Kind::kHostWait; }
  bool operator==(const StreamCommand&) const = default;
};

/// Amount of data and of arithmetic of a step.
struct StepSize {
  std::optional<std::int64_t> samples{};  ///< nullopt: not known
  std::optional<std::int64_t> tokens{};   ///< nullopt: not known, or the step has none
  /// Operations of matrix products, convolutions and attention, forward and backward, as OpWork counts them,
  /// without what checkpointing computes again. 0: not counted.
  double flops = 0;

  bool operator==(const StepSize&) const = default;
};

}  // namespace offprof

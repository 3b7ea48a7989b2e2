#pragma once

#include <algorithm>

#include "traces/base/units.h"
#include "traces/model/placement.h"

namespace offprof {

/// Cost of copies in one direction: `latency + bytes / bandwidth`, one copy at a time, first come first
/// served.
struct LinkDirection {
  double bytes_per_second = 0;
  Nanoseconds latency_ns = 0;
  Nanoseconds start_ns = 0;  ///< from the end of a copy's request to its start, if no other is ahead

  /// Longest latency and longest transfer that clocks can count. A replay rejects links that need more.
  static constexpr Nanoseconds kLongest = Nanoseconds{1} << 60;

  Nanoseconds duration(Bytes bytes) const {
    const double transfer = 1e9 * static_cast<double>(bytes) / bytes_per_second;
    const bool is_endless = !(transfer < static_cast<double>(kLongest));
    return std::min(latency_ns, kLongest) + (is_endless ? kLongest : static_cast<Nanoseconds>(transfer));
  }
  bool operator==(const LinkDirection&) const = default;
};

/// Returns a direction with the worse figure of `a` and `b` in each member.
inline LinkDirection slower_of(const LinkDirection& a, const LinkDirection& b) {
  return {std::min(a.bytes_per_second, b.bytes_per_second), std::max(a.latency_ns, b.latency_ns),
          std::max(a.start_ns, b.start_ns)};
}

/// Link to the disk that tensors are offloaded to, or to the compressor that replaces it. Each direction
/// performs one transfer at a time, first come first served; the two directions do not slow each other. If
/// bytes_per_second is 0, the speed is unknown and transfers take no time.
struct DiskLink {
  LinkDirection write, read;
  bool is_compressed = false;  ///< there is no disk; tensors lie compressed in host memory

  bool is_known() const { return write.bytes_per_second > 0 && read.bytes_per_second > 0; }
  Place place() const { return is_compressed ? Place::kCompress : Place::kDisk; }
  bool operator==(const DiskLink&) const = default;
};

/// Link between device and host memory, and the link from there to the disk.
struct Link {
  LinkDirection d2h;
  LinkDirection h2d;
  /// Host time for the request of a copy; the copy starts after it.
  Nanoseconds launch_ns = 0;
  /// Both directions share one link, as on machines where device and host share their memory. It performs one
  /// copy at a time, in either direction, first come first served.
  bool is_shared = false;
  DiskLink disk{};

  bool operator==(const Link&) const = default;
};

/// Returns a link with the worse figures of `a` and `b`. The disk is that of `a`.
inline Link slower_of(const Link& a, const Link& b) {
  return {slower_of(a.d2h, b.d2h), slower_of(a.h2d, b.h2d), std::max(a.launch_ns, b.launch_ns),
          a.is_shared || b.is_shared, a.disk};
}

}  // namespace offprof

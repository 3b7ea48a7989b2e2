#pragma once

#include <algorithm>

#include "traces/placement.h"
#include "traces/units.h"

namespace offprof {

/// What one copy direction costs: `latency + bytes / bandwidth`, one copy at a time, first come first served.
struct LinkDirection {
  double bytes_per_second = 0;
  Nanoseconds latency_ns = 0;
  Nanoseconds start_ns = 0;  ///< from asking for a copy to its beginning, where nothing is before it

  /// Of latency and transfer, as much as clocks can count; a replay refuses links that need more.
  static constexpr Nanoseconds kLongest = Nanoseconds{1} << 60;

  Nanoseconds duration(Bytes bytes) const {
    const double transfer = 1e9 * static_cast<double>(bytes) / bytes_per_second;
    const bool is_endless = !(transfer < static_cast<double>(kLongest));
    return std::min(latency_ns, kLongest) + (is_endless ? kLongest : static_cast<Nanoseconds>(transfer));
  }
  bool operator==(const LinkDirection&) const = default;
};

/// A direction of which each figure is the worse of two.
inline LinkDirection slower_of(const LinkDirection& a, const LinkDirection& b) {
  return {std::min(a.bytes_per_second, b.bytes_per_second), std::max(a.latency_ns, b.latency_ns),
          std::max(a.start_ns, b.start_ns)};
}

/// The disk that tensors are offloaded to, or what compresses them in its place, each direction one transfer
/// at a time, first come first served, and neither in the other's way. bytes_per_second 0: not known, and
/// transfers are taken to need no time.
struct DiskLink {
  LinkDirection write, read;
  bool is_compressed = false;  ///< no disk, but host memory in which tensors lie compressed

  bool is_known() const { return write.bytes_per_second > 0 && read.bytes_per_second > 0; }
  Place place() const { return is_compressed ? Place::kCompress : Place::kDisk; }
  bool operator==(const DiskLink&) const = default;
};

/// The link between device and host memory, and the one beyond it.
struct Link {
  LinkDirection d2h;
  LinkDirection h2d;
  /// What asking for a copy takes of the host's time; the copy begins after it.
  Nanoseconds launch_ns = 0;
  /// Both directions go over one and the same, as where device and host share their memory: it makes one copy
  /// at a time, of either direction, first come first served.
  bool is_shared = false;
  DiskLink disk{};

  bool operator==(const Link&) const = default;
};

/// Likewise both; the disk is `a`'s.
inline Link slower_of(const Link& a, const Link& b) {
  return {slower_of(a.d2h, b.d2h), slower_of(a.h2d, b.h2d), std::max(a.launch_ns, b.launch_ns),
          a.is_shared || b.is_shared, a.disk};
}

}  // namespace offprof

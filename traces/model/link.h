#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/copy_record.h"
#include "traces/model/placement.h"

namespace offprof {

/// Cost of copies in one direction: `latency + bytes / bandwidth`, one copy at a time, first come first
/// served.
struct LinkDirection {
  double bytes_per_second = 0;
  Nanoseconds latency_ns = 0;
  Nanoseconds start_ns = 0;  ///< from the end of a copy's request to its start, if no other is ahead
  /// Time that the compute stream loses for a byte of a copy on another stream, which takes bandwidth of the
  /// device memory from kernels.
  double compute_ns_per_byte = 0;

  /// Longest latency and longest transfer that clocks can count. A replay rejects links that need more.
  static constexpr Nanoseconds kLongest = Nanoseconds{1} << 60;

  Nanoseconds duration(Bytes bytes) const {
    const double transfer = 1e9 * static_cast<double>(bytes) / bytes_per_second;
    const bool is_endless = !(transfer < static_cast<double>(kLongest));
    return std::min(latency_ns, kLongest) + (is_endless ? kLongest : static_cast<Nanoseconds>(transfer));
  }
  /// Returns the time that the compute stream loses by a copy on another stream.
  Nanoseconds compute_loss(Bytes bytes) const {
    return compute_ns_per_byte > 0 ? std::llround(compute_ns_per_byte * static_cast<double>(bytes)) : 0;
  }
  bool operator==(const LinkDirection&) const = default;
};

/// Returns a direction with the worse figure of `a` and `b` in each member.
inline LinkDirection slower_of(const LinkDirection& a, const LinkDirection& b) {
  return {std::min(a.bytes_per_second, b.bytes_per_second), std::max(a.latency_ns, b.latency_ns),
          std::max(a.start_ns, b.start_ns), std::max(a.compute_ns_per_byte, b.compute_ns_per_byte)};
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
  /// Sum of both directions while both copy; 0: they do not slow each other down.
  double bidirectional_bytes_per_second = 0;

  const LinkDirection& of(CopyDirection direction) const {
    return direction == CopyDirection::kD2h ? d2h : h2d;
  }
  /// Returns true if copies of one direction slow those of the other down.
  bool slows_both() const {
    return !is_shared && bidirectional_bytes_per_second > 0 &&
           bidirectional_bytes_per_second < d2h.bytes_per_second + h2d.bytes_per_second;
  }
  bool slows_compute() const { return d2h.compute_ns_per_byte > 0 || h2d.compute_ns_per_byte > 0; }
  /// Returns the share of its bandwidth that a direction has while a copy of the other runs at full pace.
  double pace_beside_other(CopyDirection direction) const {
    const LinkDirection& other = direction == CopyDirection::kD2h ? h2d : d2h;
    const double left = bidirectional_bytes_per_second - other.bytes_per_second;
    return std::clamp(left / of(direction).bytes_per_second, 0.0, 1.0);
  }
  /// Returns bidirectional_bytes_per_second for other rates of both directions, of which it is the same
  /// share.
  double bidirectional_of(const LinkDirection& other_d2h, const LinkDirection& other_h2d) const {
    if (bidirectional_bytes_per_second <= 0) return 0;
    return bidirectional_bytes_per_second * (other_d2h.bytes_per_second + other_h2d.bytes_per_second) /
           (d2h.bytes_per_second + h2d.bytes_per_second);
  }
  bool operator==(const Link&) const = default;
};

/// Returns a link with the worse figures of `a` and `b`, and the worse share of both directions at once. The
/// disk is that of `a`.
inline Link slower_of(const Link& a, const Link& b) {
  Link link = {slower_of(a.d2h, b.d2h), slower_of(a.h2d, b.h2d), std::max(a.launch_ns, b.launch_ns),
               a.is_shared || b.is_shared, a.disk};
  const double of_a = a.bidirectional_of(link.d2h, link.h2d), of_b = b.bidirectional_of(link.d2h, link.h2d);
  link.bidirectional_bytes_per_second = of_a > 0 && of_b > 0 ? std::min(of_a, of_b) : std::max(of_a, of_b);
  return link;
}

/// The copy engines of a link: one for each direction, or one for both if the link is shared. An engine makes
/// one copy at a time, in the order of the calls. While both directions copy, the copy of the earlier call
/// keeps its pace, and the other one has what that leaves of Link::bidirectional_bytes_per_second. So each
/// end is known at once, and both together are as fast as the link. Latency counts as transfer.
class LinkEngines {
 public:
  struct Span {
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
  };

  /// Makes a copy that begins at `earliest`, or when its engine is free.
  Span copy(const Link& link, CopyDirection direction, Bytes bytes, Nanoseconds earliest) {
    const bool is_out = direction == CopyDirection::kD2h;
    Engine& own = engines_[is_out || link.is_shared ? 0 : 1];
    const Nanoseconds begin = std::max(earliest, own.free);
    own.free = begin + link.of(direction).duration(bytes);
    if (link.slows_both()) {
      own.free = end_beside(engines_[is_out ? 1 : 0], begin, own.free, link.pace_beside_other(direction));
      note(own.busy, {begin, own.free});
    }
    return {begin, own.free};
  }

 private:
  struct Engine {
    Nanoseconds free = 0;
    /// Times of its copies that those of the other direction may still meet; empty if the directions do not
    /// slow each other down.
    std::vector<Span> busy{};
  };

  static void note(std::vector<Span>& busy, const Span& span) {
    if (!busy.empty() && busy.back().end == span.begin)
      busy.back().end = span.end;
    else
      busy.push_back(span);
  }

  /// Returns the end of a copy that would end at `end` on its own, and has that share of its pace while the
  /// other engine copies. Computes with times since `begin`, so that the result does not depend on when the
  /// clock began.
  static Nanoseconds end_beside(Engine& other, Nanoseconds begin, Nanoseconds end, double pace) {
    const auto is_over = [begin](const Span& span) { return span.end <= begin; };
    other.busy.erase(other.busy.begin(), std::ranges::find_if_not(other.busy, is_over));
    auto time = 0.0, left = static_cast<double>(end - begin);
    for (const Span& met : other.busy) {
      const auto slow_from = static_cast<double>(std::max(met.begin - begin, Nanoseconds{0}));
      const auto slow_until = static_cast<double>(met.end - begin);
      if (time + left <= slow_from) break;
      left -= slow_from - time;
      const double done = (slow_until - slow_from) * pace;
      if (done >= left) return begin + std::llround(slow_from + left / pace);
      left -= done;
      time = slow_until;
    }
    return begin + std::llround(time + left);
  }

  std::array<Engine, 2> engines_{};
};

}  // namespace offprof

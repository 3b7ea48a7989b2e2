#pragma once

#include <algorithm>
#include <vector>

#include "engine/schedule/scheduler.h"
#include "traces/link.h"
#include "traces/timeline.h"

namespace offprof {

/// The compute stream and the copy engines on virtual clocks. A copy starts when the compute stream has
/// reached the point where it was asked for and its engine is free; an engine runs one copy at a time, first
/// come first served.
class VirtualClock {
 public:
  struct Copy {
    Track track = Track::kD2h;
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
  };

  /// `one_side_stream`: both directions queue behind each other, as under the `trl` preset.
  VirtualClock(const Link& link, bool one_side_stream) : link_(link), one_side_stream_(one_side_stream) {}

  Nanoseconds now() const { return now_; }
  Nanoseconds exposed_ns() const { return exposed_; }
  Nanoseconds d2h_busy_ns() const { return d2h_busy_; }
  Nanoseconds h2d_busy_ns() const { return h2d_busy_; }

  void compute(Nanoseconds duration) { now_ += duration; }

  Copy copy_out(Bytes bytes) { return copy(Track::kD2h, link_.d2h.duration(bytes), d2h_free_, d2h_busy_); }
  Copy copy_in(Bytes bytes) {
    Nanoseconds& free = one_side_stream_ ? d2h_free_ : h2d_free_;
    return copy(Track::kH2d, link_.h2d.duration(bytes), free, h2d_busy_);
  }

  /// The compute stream stands until `copy` is done. How long it stood.
  Nanoseconds wait(const Copy& copy) {
    const Nanoseconds stall = std::max<Nanoseconds>(0, copy.end - now_);
    now_ += stall;
    exposed_ += stall;
    return stall;
  }

 private:
  Copy copy(Track track, Nanoseconds duration, Nanoseconds& engine_free, Nanoseconds& busy) const {
    const Nanoseconds begin = std::max(now_, engine_free);
    engine_free = begin + duration;
    busy += duration;
    return {track, begin, engine_free};
  }

  Link link_;
  bool one_side_stream_;
  Nanoseconds now_ = 0;
  Nanoseconds exposed_ = 0;
  Nanoseconds d2h_free_ = 0, h2d_free_ = 0;
  Nanoseconds d2h_busy_ = 0, h2d_busy_ = 0;
};

}  // namespace offprof

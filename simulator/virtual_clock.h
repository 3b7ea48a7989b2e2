#pragma once

#include <algorithm>

#include "traces/link.h"
#include "traces/timeline.h"
#include "traces/work.h"

namespace offprof {

/// Host, compute stream, copy streams and copy engines on virtual clocks.
///
/// On a device that computes beside the host, the host runs ahead of the compute stream; where the host
/// itself computes, both are one clock. A copy begins when the compute stream has reached the point where it
/// was asked for, the copies before it on its stream are done, the host has asked for it, and its direction's
/// engine is free; an engine makes one copy at a time, first come first served.
class VirtualClock {
 public:
  struct Copy {
    Track track = Track::kD2h;
    Nanoseconds begin = 0;  ///< when its stream came to it
    Nanoseconds end = 0;
  };
  enum class Computes { kOnHost, kBesideHost };

  /// `one_side_stream`: copies of both directions queue behind each other, as under the `trl` preset.
  VirtualClock(const Link& link, bool one_side_stream, Computes computes = Computes::kOnHost)
      : link_(link), one_side_stream_(one_side_stream), computes_(computes) {}

  /// Where the compute stream is when it has nothing to do but wait for the host.
  Nanoseconds now() const { return std::max(host_, stream_); }
  Nanoseconds exposed_ns() const { return exposed_; }
  Nanoseconds d2h_busy_ns() const { return d2h_.busy; }
  Nanoseconds h2d_busy_ns() const { return h2d_.busy; }

  /// Where the host computes.
  void compute(Nanoseconds duration) { host_ = stream_ = now() + duration; }
  /// Where it does not.
  void run(const Work& work) {
    const Nanoseconds host = host_, stream = stream_;
    host_ = std::max(host + work.host_ns, stream + work.wait_ns);
    stream_ = std::max(host + work.path_ns, stream + work.stream_ns);
  }

  Copy copy_out(Bytes bytes) { return copy(Track::kD2h, link_.d2h.duration(bytes), d2h_, d2h_stream_); }
  Copy copy_in(Bytes bytes) {
    return copy(Track::kH2d, link_.h2d.duration(bytes), h2d_, one_side_stream_ ? d2h_stream_ : h2d_stream_);
  }

  /// Work on the stream of copies out, after all that the compute stream was given so far.
  void stage(const Work& work) {
    const Nanoseconds stream = std::max(now(), d2h_stream_);
    d2h_stream_ = std::max(host_ + work.path_ns, stream + work.stream_ns);
    host_ += work.host_ns;
    meet_host();
  }

  /// The compute stream stands until `copy` is done. How long it stood.
  Nanoseconds wait(const Copy& copy) {
    const Nanoseconds before = now();
    stream_ = std::max(stream_, copy.end);
    meet_host();
    const Nanoseconds stall = now() - before;
    exposed_ += stall;
    return stall;
  }

 private:
  struct Engine {
    Nanoseconds free = 0;
    Nanoseconds busy = 0;
  };

  void meet_host() {
    if (computes_ == Computes::kOnHost) host_ = stream_ = now();
  }

  Copy copy(Track track, Nanoseconds duration, Engine& engine, Nanoseconds& stream) {
    const Nanoseconds begin = std::max(now(), stream);
    host_ += link_.launch_ns;
    meet_host();
    stream = std::max({begin, host_, engine.free}) + duration;
    engine.free = stream;
    engine.busy += stream - begin;
    return {track, begin, stream};
  }

  Link link_;
  bool one_side_stream_;
  Computes computes_;
  Nanoseconds host_ = 0, stream_ = 0;
  Nanoseconds d2h_stream_ = 0, h2d_stream_ = 0;
  Engine d2h_, h2d_;
  Nanoseconds exposed_ = 0;
};

}  // namespace offprof

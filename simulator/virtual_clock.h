#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "traces/calibration.h"
#include "traces/link.h"
#include "traces/timeline.h"
#include "traces/units.h"
#include "traces/work.h"

namespace offprof {

/// Virtual clocks of the host, of the compute stream, and of the copies' side streams. Where the device
/// computes beside the host, the host runs ahead of the compute stream; where the host itself computes, both
/// are one clock. A copy begins when the compute stream has reached the point where it was asked for, the
/// copies before it on its stream are done, the host has asked for it and its stream has woken, and its
/// direction's engine is free; an engine makes one copy at a time, first come first served. Over a shared
/// link both directions have the same one. The disk has an engine for each direction likewise.
class VirtualClock {
 public:
  struct Copy {
    Track track = Track::kD2h;
    Nanoseconds begin = 0;     ///< when its stream came to it, and was awake
    Nanoseconds transfer = 0;  ///< when the link did
    Nanoseconds end = 0;
    Bytes bytes = 0;
    Nanoseconds ready = 0;  ///< when what is copied in had come from the disk; 0: it had not to
  };
  /// How long the compute stream stood for a copy, until now: first for the disk, which has not read it yet,
  /// then for the link, which was busy with others or not asked yet, then for the copy's own transfer.
  struct Wait {
    Nanoseconds for_disk = 0;
    Nanoseconds for_link = 0;
    Nanoseconds for_transfer = 0;
    Nanoseconds total() const { return for_disk + for_link + for_transfer; }
  };
  enum class Computes { kOnHost, kBesideHost };

  /// `one_side_stream`: copies of both directions queue behind each other, as under the `trl` preset.
  /// `costs` must outlive the clock. Where the device computes beside the host, hooks and events take the
  /// host's time, and what copies and reloads slow down is the stream.
  VirtualClock(const Link& link, bool one_side_stream, Computes computes = Computes::kOnHost,
               const EngineCosts& costs = kNoCosts)
      : link_(link), one_side_stream_(one_side_stream), computes_(computes), costs_(costs) {}

  /// Where the compute stream is when it has nothing to do but wait for the host.
  Nanoseconds now() const { return std::max(host_, stream_); }
  /// Stood waiting for copies.
  Nanoseconds exposed_ns() const { return exposed_; }
  /// Stood waiting for the host, from the step's beginning to now.
  Nanoseconds launch_gap_ns() const { return computes_ == Computes::kOnHost ? 0 : now() - exposed_ - busy_; }
  Nanoseconds d2h_busy_ns() const { return d2h_.busy; }
  Nanoseconds h2d_busy_ns() const { return h2d_.busy; }

  /// Where the host computes: so long, and what copies beside it slow it down.
  void compute(Nanoseconds duration) {
    host_ = stream_ = are_copies_slowing() ? computed_beside_copies(now(), duration) : now() + duration;
  }
  /// Where it does not.
  void run(const Work& work) {
    const Nanoseconds host = host_, stream = stream_;
    host_ = std::max(host + work.host_ns, stream + work.wait_ns);
    stream_ = std::max(host + work.path_ns, stream + work.stream_ns);
    busy_ += work.busy_ns;
    if (are_copies_slowing() && work.stream_ns > 0) slow_down(work.stream_ns);
  }
  /// A hook of the engine: see EngineCosts.
  void hook() { call(costs_.hook_ns); }

  Copy copy_out(Bytes bytes) { return copy(Track::kD2h, bytes, link_.d2h, d2h_, d2h_stream_); }
  /// `ready`: its stream waits until then for the disk to have read it.
  Copy copy_in(Bytes bytes, Nanoseconds ready = 0) {
    return copy_in_on(one_side_stream_ ? d2h_stream_ : h2d_stream_, bytes, ready);
  }

  /// Of weights, which come on the side stream of copies in whatever the policy says of saved tensors'.
  Copy fetch(Bytes bytes, Nanoseconds ready = 0) { return copy_in_on(h2d_stream_, bytes, ready); }

  /// Begins when `after` has come and the disk is done with what it was given before.
  Copy write_disk(Bytes bytes, Nanoseconds after) {
    return transfer(Track::kDiskWrite, bytes, link_.disk.write, disk_write_free_, after);
  }
  /// Likewise, asked for now.
  Copy read_disk(Bytes bytes) {
    return transfer(Track::kDiskRead, bytes, link_.disk.read, disk_read_free_, now());
  }
  /// The host stands until the transfer is done; returns how long compute stood with it.
  Nanoseconds wait_for_disk(const Copy& transfer) {
    const Nanoseconds before = now();
    host_ = std::max(host_, transfer.end);
    if (computes_ != Computes::kOnHost) return 0;  // what it launches later comes later
    meet_host();
    exposed_ += now() - before;
    return now() - before;
  }

  /// Work on the stream of copies out, after all that the compute stream was given so far.
  void stage(const Work& work) {
    const Nanoseconds stream = std::max(now(), d2h_stream_);
    d2h_stream_ = std::max(host_ + work.path_ns, stream + work.stream_ns);
    host_ += work.host_ns;
    meet_host();
  }

  /// The compute stream stands until `copy` is done, and what it had in the caches may be gone then.
  Wait wait(const Copy& copy) {
    call(costs_.event_ns);
    const Nanoseconds before = now();
    stream_ = std::max(stream_, copy.end);
    meet_host();
    const Nanoseconds stood = now() - before;
    exposed_ += stood;
    if (!costs_.standstills.empty()) catch_up(copy);
    if (costs_.reload_ns_per_byte > 0 && copy.track == Track::kH2d)
      compute_cold(std::llround(costs_.reload_ns_per_byte * static_cast<double>(copy.bytes)));
    const Nanoseconds for_disk = std::clamp<Nanoseconds>(copy.ready - before, 0, stood);
    const Nanoseconds for_link =
        std::clamp<Nanoseconds>(copy.transfer - before - for_disk, 0, stood - for_disk);
    return {for_disk, for_link, stood - for_disk - for_link};
  }

 private:
  static inline const EngineCosts kNoCosts;
  /// Copies of a device beside the host count from when they are asked for, and so one on top of the other.
  static constexpr Nanoseconds kMostBusy = Nanoseconds{1} << 61;

  struct Running {
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
    double slowdown = 0;  ///< that compute loses of each nanosecond beside it
  };
  struct Engine {
    Nanoseconds free = 0;
    Nanoseconds busy = 0;
    std::vector<Running> copies;  ///< where compute is slowed down
    std::size_t first = 0;        ///< of those that are not over

    bool is_running() const { return first < copies.size(); }
  };

  /// Of the thread that calls the engine.
  void call(Nanoseconds duration) {
    if (duration <= 0) return;
    if (computes_ == Computes::kOnHost)
      compute(duration);
    else
      host_ += duration;
  }

  /// What compute takes longer, since it finds its data in no cache.
  void compute_cold(Nanoseconds duration) {
    if (computes_ == Computes::kOnHost) return compute(duration);
    stream_ += duration;
    busy_ += duration;
  }

  bool are_copies_slowing() const {
    return costs_.slowdown_ns_per_byte > 0 && (d2h_.is_running() || h2d_.is_running());
  }

  /// The last so much of what the stream did lay beside copies.
  void slow_down(Nanoseconds duration) {
    const Nanoseconds end = std::max(stream_, computed_beside_copies(stream_ - duration, duration));
    busy_ += end - stream_;
    stream_ = end;
  }

  void meet_host() {
    if (computes_ == Computes::kOnHost) host_ = stream_ = now();
  }

  Copy copy(Track track, Bytes bytes, const LinkDirection& direction, Engine& engine, Nanoseconds& stream) {
    Nanoseconds begin = std::max(now(), stream);
    host_ += link_.launch_ns;
    meet_host();
    Nanoseconds& free = link_.is_shared ? shared_free_ : engine.free;
    const Nanoseconds transfer = std::max({begin, host_ + direction.start_ns, free});
    const Nanoseconds duration = direction.duration(bytes);
    stream = free = transfer + duration;
    if (computes_ == Computes::kOnHost) begin = transfer;  // a thread that sleeps copies nothing
    engine.busy = std::min(engine.busy + (stream - begin), kMostBusy);
    if (costs_.slowdown_ns_per_byte > 0 && duration > 0)
      engine.copies.push_back(
          {transfer, stream,
           costs_.slowdown_ns_per_byte * static_cast<double>(bytes) / static_cast<double>(duration)});
    return {track, begin, transfer, stream, bytes};
  }

  Copy copy_in_on(Nanoseconds& stream, Bytes bytes, Nanoseconds ready) {
    stream = std::max(stream, ready);
    Copy copied = copy(Track::kH2d, bytes, link_.h2d, h2d_, stream);
    copied.ready = ready;
    return copied;
  }

  static Copy transfer(Track track, Bytes bytes, const LinkDirection& disk, Nanoseconds& free,
                       Nanoseconds after) {
    const Nanoseconds begin = std::max(after, free);
    free = begin + (disk.bytes_per_second > 0 ? disk.duration(bytes) : 0);
    return {track, begin, begin, free, bytes};
  }

  /// The loss goes by the time that the copy took, and compute that is late for the copy makes it good: so it
  /// is never better to come later.
  void catch_up(const Copy& copy) {
    host_ = stream_ = std::max(now(), copy.end + costs_.lost_after(copy.end - copy.transfer));
  }

  /// When compute of that length that begins then is done, each nanosecond of it beside a copy taking 1 +
  /// slowdown. Each turn but the last comes to the beginning or the end of a copy, so there are no more turns
  /// than these.
  Nanoseconds computed_beside_copies(Nanoseconds begin, Nanoseconds duration) {
    auto time = static_cast<double>(begin);
    auto left = static_cast<double>(duration);
    while (true) {
      double pace = 1, until = std::numeric_limits<double>::infinity();
      for (Engine* engine : {&d2h_, &h2d_}) meet_copy(*engine, time, pace, until);
      const double end = time + left * pace;
      if (end <= until) return static_cast<Nanoseconds>(std::llround(end));
      left = std::max(0.0, left - (until - time) / pace);
      time = until;
    }
  }

  /// What the engine's next copy does to compute at `time`: its `pace`, `until` when that holds at most,
  /// which is later than `time`.
  static void meet_copy(Engine& engine, double time, double& pace, double& until) {
    while (engine.is_running() && static_cast<double>(engine.copies[engine.first].end) <= time)
      ++engine.first;
    if (!engine.is_running()) return;
    const Running& copy = engine.copies[engine.first];
    const bool has_begun = static_cast<double>(copy.begin) <= time;
    if (has_begun) pace += copy.slowdown;
    until = std::min(until, static_cast<double>(has_begun ? copy.end : copy.begin));
  }

  Link link_;
  bool one_side_stream_;
  Computes computes_;
  const EngineCosts& costs_;
  Nanoseconds host_ = 0, stream_ = 0;
  Nanoseconds d2h_stream_ = 0, h2d_stream_ = 0;
  Engine d2h_, h2d_;
  Nanoseconds disk_write_free_ = 0, disk_read_free_ = 0;
  Nanoseconds shared_free_ = 0;  ///< of a link that both share
  Nanoseconds exposed_ = 0, busy_ = 0;
};

}  // namespace offprof

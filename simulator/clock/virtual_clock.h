#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "simulator/clock/side_streams.h"
#include "traces/base/units.h"
#include "traces/model/calibration.h"
#include "traces/model/link.h"
#include "traces/model/timeline.h"
#include "traces/model/work.h"

namespace offprof {

/// Virtual clocks of the host, of the compute stream, of other streams of the program, and of the side
/// streams of copies. If the device computes beside the host (asynchronously, like a GPU), the host runs
/// ahead of the compute stream; if the host itself computes, both are one clock. A copy begins when all of
/// these hold: the compute stream has reached the point of the request, the earlier copies on the copy's
/// stream are done, the host has issued the request and the stream has woken up, and the engine of the copy's
/// direction is free (LinkEngines). The disk also has one engine per direction.
class VirtualClock {
 public:
  struct Copy {
    Track track = Track::kD2h;
    Nanoseconds begin = 0;     ///< when its stream reached it and was awake
    Nanoseconds transfer = 0;  ///< when the link began it
    Nanoseconds end = 0;
    Bytes bytes = 0;
    Nanoseconds ready = 0;  ///< when the copied data had been read from the disk; 0: no read
  };
  /// How long the compute stream was idle in a wait for a copy. It waits first for the disk, which has not
  /// read the data yet, then for the link, which was busy with others or had no request yet, then for the
  /// transfer.
  struct Wait {
    Nanoseconds for_disk = 0;
    Nanoseconds for_link = 0;
    Nanoseconds for_transfer = 0;
    Nanoseconds total() const { return for_disk + for_link + for_transfer; }
  };
  enum class Computes { kOnHost, kBesideHost };

  /// `one_side_stream`: copies of both directions queue in one stream, as under the `trl` preset. `costs`
  /// must outlive the clock. If the device computes beside the host, hooks and events take the host's time,
  /// and copies and reloads slow down the stream.
  VirtualClock(const Link& link, bool one_side_stream, Computes computes = Computes::kOnHost,
               const EngineCosts& costs = kNoCosts)
      : link_(link), one_side_stream_(one_side_stream), computes_(computes), costs_(costs) {}

  /// Returns the time of the compute stream once it has no work left but to wait for the host.
  Nanoseconds now() const { return std::max(host_, stream_); }
  /// Time spent in waits for copies.
  Nanoseconds exposed_ns() const { return exposed_; }
  /// Time spent in waits for the host, from the beginning of the step to now.
  Nanoseconds launch_gap_ns() const { return computes_ == Computes::kOnHost ? 0 : now() - exposed_ - busy_; }
  Nanoseconds d2h_busy_ns() const { return d2h_.busy; }
  Nanoseconds h2d_busy_ns() const { return h2d_.busy; }

  /// For a host that computes: advances by `duration`, and by the slowdown from copies that run at the same
  /// time.
  void compute(Nanoseconds duration) {
    host_ = stream_ = are_copies_slowing() ? computed_beside_copies(now(), duration) : now() + duration;
  }
  /// For a device that computes beside the host: runs `work`.
  void run(const Work& work) {
    const Nanoseconds host = host_, stream = stream_;
    host_ = std::max(host + work.host_ns, stream + work.wait_ns);
    stream_ = std::max(host + work.path_ns, stream + work.stream_ns);
    busy_ += work.busy_ns;
    if (are_copies_slowing() && work.stream_ns > 0) slow_down(work.stream_ns);
  }
  /// For a device that computes beside the host: runs the work before a command of another stream, and the
  /// command. The compute stream counts as busy while it waits for other streams, unless these make copies.
  void run(const StreamCommand& command) {
    using Kind = StreamCommand::Kind;
    run(command.before);
    if (command.copies()) return copy_of_program(command);
    if (command.kind == Kind::kDeviceWait) {
      host_ = std::max({now(), d2h_stream_, h2d_stream_, streams_.done()});
      return;
    }
    if (command.runs_kernel()) {
      streams_.run(command, host_, command.duration_ns);
      return;
    }
    if (command.kind == Kind::kRecord) return streams_.record(command, host_, now());
    if (command.kind == Kind::kWait && command.stream != 0) return streams_.wait(command);
    const SideStreams::Point& point = streams_.point(command);
    if (command.kind == Kind::kHostWait) {
      host_ = std::max(host_, point.time);
      return;
    }
    if (!point.is_of_copies) busy_ += std::max<Nanoseconds>(0, point.time - now());
    stream_ = std::max(stream_, point.time);
  }
  /// Returns true if the host finds that the point is reached.
  bool has_reached(std::int32_t point) const { return streams_.has_reached(point, host_); }
  /// Accounts for a hook of the engine: see EngineCosts.
  void hook() { call(costs_.hook_ns); }

  Copy copy_out(Bytes bytes) { return copy(Track::kD2h, bytes, link_.d2h, d2h_, d2h_stream_); }
  /// `ready`: the time until which the copy's stream waits for the disk to have read the data.
  Copy copy_in(Bytes bytes, Nanoseconds ready = 0) {
    return copy_in_on(one_side_stream_ ? d2h_stream_ : h2d_stream_, bytes, ready);
  }

  /// Copies parameters in, on the side stream of copies in, whatever the policy's streams for saved tensors.
  Copy fetch(Bytes bytes, Nanoseconds ready = 0) { return copy_in_on(h2d_stream_, bytes, ready); }

  /// Writes to the disk. Begins when `after` has passed and the disk has finished its earlier writes.
  Copy write_disk(Bytes bytes, Nanoseconds after) {
    return transfer(Track::kDiskWrite, bytes, link_.disk.write, disk_write_free_, after);
  }
  /// Reads from the disk. Requested now; begins when the disk has finished its earlier reads.
  Copy read_disk(Bytes bytes) {
    return transfer(Track::kDiskRead, bytes, link_.disk.read, disk_read_free_, now());
  }
  /// Blocks the host until the transfer is done. Returns how long compute was idle as well.
  Nanoseconds wait_for_disk(const Copy& transfer) {
    const Nanoseconds before = now();
    host_ = std::max(host_, transfer.end);
    if (computes_ != Computes::kOnHost) return 0;  // later launches are delayed instead
    meet_host();
    exposed_ += now() - before;
    return now() - before;
  }

  /// Adds work to the stream of copies out, after all work given to the compute stream so far.
  void stage(const Work& work) {
    const Nanoseconds stream = std::max(now(), d2h_stream_);
    d2h_stream_ = std::max(host_ + work.path_ns, stream + work.stream_ns);
    host_ += work.host_ns;
    meet_host();
  }

  /// Makes the compute stream wait until `copy` is done. After that, its data in the caches may be gone.
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
  /// Upper bound on an engine's busy time. If the device computes beside the host, each copy counts from its
  /// request, so the times of several copies add up.
  static constexpr Nanoseconds kMostBusy = Nanoseconds{1} << 61;

  struct Running {
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
    double slowdown = 0;  ///< extra time for each nanosecond of compute during it
  };
  struct Engine {
    Nanoseconds busy = 0;
    std::vector<Running> copies;  ///< only if copies slow compute down
    std::size_t first = 0;        ///< index of the first that is not over

    bool is_running() const { return first < copies.size(); }
  };

  /// Spends time of the thread that calls the engine.
  void call(Nanoseconds duration) {
    if (duration <= 0) return;
    if (computes_ == Computes::kOnHost)
      compute(duration);
    else
      host_ += duration;
  }

  /// Adds compute time that is lost because the data is in no cache.
  void compute_cold(Nanoseconds duration) {
    if (computes_ == Computes::kOnHost) return compute(duration);
    stream_ += duration;
    busy_ += duration;
  }

  /// Lets the compute stream finish later because a copy takes bandwidth from its kernels. Counted at once
  /// when the copy is requested: a stream that waits for it anyway loses nothing.
  void lose_compute(Nanoseconds duration) {
    if (duration == 0) return;
    stream_ = now() + duration;
    busy_ += duration;
  }

  bool are_copies_slowing() const {
    return costs_.slowdown_ns_per_byte > 0 && (d2h_.is_running() || h2d_.is_running());
  }

  /// Slows down the last `duration` of the stream's work, which ran during copies.
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
    const CopyDirection way = track == Track::kD2h ? CopyDirection::kD2h : CopyDirection::kH2d;
    const auto [transfer, end] =
        engines_.copy(link_, way, bytes, std::max(begin, host_ + direction.start_ns));
    const Nanoseconds duration = end - transfer;
    stream = end;
    if (computes_ == Computes::kOnHost) begin = transfer;  // a sleeping thread copies nothing
    engine.busy = std::min(engine.busy + (stream - begin), kMostBusy);
    if (costs_.slowdown_ns_per_byte > 0 && duration > 0)
      engine.copies.push_back(
          {transfer, stream,
           costs_.slowdown_ns_per_byte * static_cast<double>(bytes) / static_cast<double>(duration)});
    lose_compute(direction.compute_loss(bytes));
    return {track, begin, transfer, stream, bytes};
  }

  Copy copy_in_on(Nanoseconds& stream, Bytes bytes, Nanoseconds ready) {
    stream = std::max(stream, ready);
    Copy copied = copy(Track::kH2d, bytes, link_.h2d, h2d_, stream);
    copied.ready = ready;
    return copied;
  }

  /// Makes a copy that the program itself asks for, on the compute stream or another. It waits for the engine
  /// of its direction.
  void copy_of_program(const StreamCommand& command) {
    const CopyDirection way =
        command.kind == StreamCommand::Kind::kCopyOut ? CopyDirection::kD2h : CopyDirection::kH2d;
    const Nanoseconds earliest = command.stream == 0 ? now() : streams_.ready(command, host_);
    const auto [begin, end] = engines_.copy(link_, way, command.bytes, earliest);
    if (command.stream != 0) {
      lose_compute(link_.of(way).compute_loss(command.bytes));
      return streams_.end_copy(command, end);
    }
    stream_ = end;
    busy_ += end - begin;
  }

  static Copy transfer(Track track, Bytes bytes, const LinkDirection& disk, Nanoseconds& free,
                       Nanoseconds after) {
    const Nanoseconds begin = std::max(after, free);
    free = begin + (disk.bytes_per_second > 0 ? disk.duration(bytes) : 0);
    return {track, begin, begin, free, bytes};
  }

  /// The loss depends on the duration of the copy alone, and compute that comes late to the copy absorbs it.
  /// So a later arrival is never better.
  void catch_up(const Copy& copy) {
    host_ = stream_ = std::max(now(), copy.end + costs_.lost_after(copy.end - copy.transfer));
  }

  /// Returns the end of a computation of `duration` that begins at `begin`. Each nanosecond of it that runs
  /// during a copy takes 1 + slowdown. Every iteration but the last ends at the beginning or the end of a
  /// copy, which bounds their number.
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

  /// Adds the effect of the engine's next copy at `time`: its slowdown to `pace`, and to `until` the end of
  /// the interval in which that pace holds, which is later than `time`.
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
  SideStreams streams_;
  Nanoseconds disk_write_free_ = 0, disk_read_free_ = 0;
  LinkEngines engines_;
  Nanoseconds exposed_ = 0, busy_ = 0;
};

}  // namespace offprof

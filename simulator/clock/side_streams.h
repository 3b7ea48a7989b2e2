#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/work.h"

namespace offprof {

/// Clocks of the streams that a program uses beside the compute stream, and the points that it recorded in
/// streams: see StreamCommand. Times are those of the virtual GPU (engine/devices/virtual_gpu/state).
class SideStreams {
 public:
  struct Point {
    Nanoseconds time = 0;
    bool is_of_copies = false;  ///< its stream makes copies over the link
  };

  /// Runs something that the host gives at `host` and that takes `duration`.
  void run(const StreamCommand& command, Nanoseconds host, Nanoseconds duration) {
    at(command.stream).ready = ready(command, host) + duration;
  }
  /// Returns when the stream can begin something that the host gives at `host`.
  Nanoseconds ready(const StreamCommand& command, Nanoseconds host) {
    return std::max(at(command.stream).ready, host);
  }
  /// Makes the stream busy with a copy until `end`.
  void end_copy(const StreamCommand& command, Nanoseconds end) { at(command.stream) = {end, true}; }
  /// Records a point at the end of the stream's work. The compute stream is done with its work at `computed`.
  void record(const StreamCommand& command, Nanoseconds host, Nanoseconds computed) {
    if (command.stream == 0) {
      points_.push_back({computed, false});
    } else {
      const Stream& stream = at(command.stream);
      points_.push_back({std::max(stream.ready, host), stream.has_copied});
    }
  }
  /// Makes a stream other than the compute stream wait for a point.
  void wait(const StreamCommand& command) {
    Stream& stream = at(command.stream);
    stream.ready = std::max(stream.ready, point(command).time);
  }
  /// Returns when all these streams are done with their work.
  Nanoseconds done() const {
    Nanoseconds last = 0;
    for (const Stream& stream : streams_) last = std::max(last, stream.ready);
    return last;
  }
  /// Returns true if the point has been recorded, and its stream has reached it at `time`.
  bool has_reached(std::int32_t point, Nanoseconds time) const {
    const auto index = static_cast<std::size_t>(point);
    return index < points_.size() && points_[index].time <= time;
  }
  /// Returns the point that the command waits for.
  const Point& point(const StreamCommand& command) const {
    return points_[static_cast<std::size_t>(command.point)];
  }

 private:
  struct Stream {
    Nanoseconds ready = 0;
    bool has_copied = false;
  };

  Stream& at(std::int32_t stream) {
    const auto index = static_cast<std::size_t>(stream) - 1;
    if (index >= streams_.size()) streams_.resize(index + 1);
    return streams_[index];
  }

  std::vector<Stream> streams_;
  std::vector<Point> points_;
};

}  // namespace offprof

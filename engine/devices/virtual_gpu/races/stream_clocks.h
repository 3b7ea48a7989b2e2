#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "engine/devices/virtual_gpu/races/vector_clock.h"

namespace offprof {

/// Order of operations that streams, events and the host establish. It is independent of memory.
class StreamClocks {
 public:
  /// Index of a stream in the order of first use; 0 is the legacy default stream.
  using Index = std::uint32_t;

  /// A point that an event was recorded at. `waited` is the part of its order that comes from the streams'
  /// own waits.
  struct Record {
    StreamPoint point;
    VectorClock order, waited;
  };

  StreamClocks();

  void created(StreamId stream, StreamKind kind);
  void destroyed(StreamId stream);
  Index index(StreamId stream);

  /// Adds an operation to the stream.
  StreamPoint enqueue(Index stream);
  /// Returns all that the stream's last operation happens after, itself included.
  const VectorClock& order(Index stream) const { return streams_[stream].order; }
  /// Returns all that the next operation of the stream would happen after, if it were given now.
  VectorClock next_order(Index stream) const;
  /// Returns the number of operations that the stream was given.
  std::uint64_t tick(Index stream) const { return streams_[stream].tick; }

  Record record(Index stream);
  /// Returns false if the stream's own operations and waits already order it after that record.
  bool wait(Index stream, const Record& record);

  void host_reached(const VectorClock& order) { host_.join(order); }
  void host_reached_stream(Index stream) { host_.join(next_order(stream)); }
  void host_reached_device();
  const VectorClock& host() const { return host_; }

  /// Returns the operations that precede all future work of the streams used so far.
  VectorClock floor() const;

 private:
  struct Stream {
    StreamKind kind = StreamKind::kNonBlocking;
    bool in_use = false;  ///< was given an operation, and is not destroyed
    std::uint64_t tick = 0;
    VectorClock order, waited;
  };

  void catch_up(Index stream);

  std::vector<Stream> streams_;
  std::vector<Index> blocking_;
  std::unordered_map<StreamId, Index> indices_;
  std::unordered_map<StreamId, StreamKind> kinds_;
  VectorClock host_;
};

}  // namespace offprof

#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "simulator/virtual_gpu/stream_ids.h"
#include "simulator/virtual_gpu/vector_clock.h"

namespace offprof {

/// What streams, events and the host order: nothing of memory is known here.
class StreamClocks {
 public:
  /// Streams count as they are first used; 0 is the legacy default stream.
  using Index = std::uint32_t;

  /// A point that an event was put on. `waited`: of what it happens after, what streams' own waits order.
  struct Record {
    StreamPoint point;
    VectorClock order, waited;
  };

  StreamClocks();

  void created(StreamId stream, StreamKind kind);
  void destroyed(StreamId stream);
  Index index(StreamId stream);

  /// A new operation on the stream.
  StreamPoint enqueue(Index stream);
  /// All that the stream's last operation happens after, itself among it.
  const VectorClock& order(Index stream) const { return streams_[stream].order; }
  /// All that an operation would happen after that the stream was given now.
  VectorClock next_order(Index stream) const;
  /// How many operations the stream was given.
  std::uint64_t tick(Index stream) const { return streams_[stream].tick; }

  Record record(Index stream);
  /// False: the stream's own operations and waits order it after that record already.
  bool wait(Index stream, const Record& record);

  void host_reached(const VectorClock& order) { host_.join(order); }
  void host_reached_stream(Index stream) { host_.join(next_order(stream)); }
  void host_reached_device();
  const VectorClock& host() const { return host_; }

  /// What is ordered before all that the streams used so far can be given from now on.
  VectorClock floor() const;

 private:
  struct Stream {
    StreamKind kind = StreamKind::kNonBlocking;
    bool in_use = false;  ///< was given something, and is not destroyed
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

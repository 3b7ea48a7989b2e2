#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "traces/base/units.h"

namespace offprof {

/// Order in which the device runs operations of its streams.
enum class WorkOrder {
  kLate,       ///< nothing runs before somebody waits for it, and then only what that needs
  kEarly,      ///< everything runs as soon as its stream and its waits allow
  kOneStream,  ///< one stream runs ahead as far as its waits allow, the others run late
  kRandom,     ///< after each call a random number of operations runs, of streams drawn one by one
};

/// Functional mode: runs the operations of the streams on real memory, in an order drawn from a seed among
/// those that streams and events allow.
///
/// Each stream is a queue. Each call runs a number of operations, one at a time and on the caller's thread.
/// Each operation is the head of a queue, and its waits are over. This finds more than racing threads: the
/// order is one that a device may take. The same seed and the same calls give the same order, so a failure
/// can be investigated. The order includes extremes that threads hardly ever reach: a copy that begins only
/// after a thousand later calls, one of which overwrites its source, or a copy that ends before the next
/// call.
///
/// Memory that an operation names must stay valid until it has run. Not thread-safe: the caller locks.
class FunctionalModeWork {
 public:
  /// Draws the WorkOrder from the seed as well.
  explicit FunctionalModeWork(std::uint64_t seed);
  FunctionalModeWork(std::uint64_t seed, WorkOrder order);
  /// Drops the operations that have not run.
  ~FunctionalModeWork();
  FunctionalModeWork(FunctionalModeWork&&) noexcept;
  FunctionalModeWork& operator=(FunctionalModeWork&&) noexcept;

  WorkOrder order() const;

  /// A stream that was never created counts as non-blocking, and nullptr as the legacy default stream.
  void stream_created(StreamId stream, StreamKind kind);
  /// Operations that were given to the stream still run later.
  void stream_destroyed(StreamId stream);

  void copy(StreamId stream, void* to, const void* from, Bytes bytes);
  void set(StreamId stream, void* to, int value, Bytes bytes);
  /// Runs `function` on the thread of some later caller. `function` must not call back into this object.
  void call(StreamId stream, std::function<void()> function);

  /// Makes later work of the stream wait until `is_reached` returns true. `is_reached` must not call back
  /// into this object, and other work or another thread must make it true, since synchronising waits for it.
  void wait_until(StreamId stream, std::function<bool()> is_reached);

  void record(EventId event, StreamId stream);
  /// Makes later work of the stream run after the event's last record so far; never recorded: no wait, as in
  /// CUDA.
  void wait(StreamId stream, EventId event);
  void event_destroyed(EventId event);

  /// Returns true if the event's last record was reached, or if it was never recorded. Operations may run
  /// before the answer. If the answer is false, one that the record waits for has run, so repeated queries
  /// end in true.
  bool query_event(EventId event);
  /// Returns true if all work of the stream is done, under the same rules.
  bool query_stream(StreamId stream);

  void synchronise_event(EventId event);
  void synchronise_stream(StreamId stream);
  void synchronise_device();

  /// Returns the number of operations that were given and have not run, including records and waits.
  std::size_t pending() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace offprof

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "simulator/virtual_gpu/stream_ids.h"
#include "traces/units.h"

namespace offprof {

/// How a device gets on with its streams.
enum class WorkOrder {
  kLate,       ///< nothing runs before somebody waits for it, and then no more than it takes
  kEarly,      ///< everything runs as soon as its stream and its waits allow
  kOneStream,  ///< one stream runs ahead as far as its waits allow, the others are late
  kRandom,     ///< after each call some operations run, none or many, of streams drawn one by one
};

/// What the streams were given, really done on real memory, in an order drawn from a seed among those that
/// streams and events allow.
///
/// Each stream is a queue. At every call a number of operations is carried out, one at a time and on the
/// caller's thread, each the head of some queue whose waits are met. That shows more than threads that race.
/// An order is one of those a device may take, it comes again for the same seed and the same calls, so what
/// it breaks can be looked into; and it goes to extremes that threads hardly ever reach: a copy that has not
/// begun when its source is overwritten a thousand calls later, or one that is over before the next call.
///
/// Memory that an operation names must stay valid until it has run. Not thread-safe: the caller locks.
class CarriedOutWork {
 public:
  /// Draws the WorkOrder too.
  explicit CarriedOutWork(std::uint64_t seed);
  CarriedOutWork(std::uint64_t seed, WorkOrder order);
  /// Drops what has not run.
  ~CarriedOutWork();
  CarriedOutWork(CarriedOutWork&&) noexcept;
  CarriedOutWork& operator=(CarriedOutWork&&) noexcept;

  WorkOrder order() const;

  /// A stream nobody has created is taken for a non-blocking one, nullptr for the legacy default stream.
  void stream_created(StreamId stream, StreamKind kind);
  /// What it was given still runs, in its time.
  void stream_destroyed(StreamId stream);

  void copy(StreamId stream, void* to, const void* from, Bytes bytes);
  void set(StreamId stream, void* to, int value, Bytes bytes);
  /// Runs `function` on the caller's thread of some later call. It must not call back into this object.
  void call(StreamId stream, std::function<void()> function);

  /// The stream's later work runs when `is_reached` says yes. It must not call back into this object, and
  /// somebody else must see to it that it says so: who synchronises waits for that.
  void wait_until(StreamId stream, std::function<bool()> is_reached);

  void record(EventId event, StreamId stream);
  /// The stream's later work runs after the event's last record so far; never recorded: no wait, as in CUDA.
  void wait(StreamId stream, EventId event);
  void event_destroyed(EventId event);

  /// Whether the last record was reached (an event never recorded is); something may run before the answer,
  /// and where the answer is no, something that it waits for has: who asks often enough gets a yes.
  bool query_event(EventId event);
  /// Likewise whether all was done that the stream was given.
  bool query_stream(StreamId stream);

  void synchronise_event(EventId event);
  void synchronise_stream(StreamId stream);
  void synchronise_device();

  /// Operations given and not run yet, records and waits among them.
  std::size_t pending() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace offprof

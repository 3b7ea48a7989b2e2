#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/copies/cores.h"
#include "traces/base/steady_clock.h"
#include "traces/base/units.h"
#include "traces/model/copy_record.h"
#include "traces/model/link.h"

namespace offprof {

/// Time that a stream stays awake after its last copy. It is longer than a step computes between two copies.
/// So copies begin when they are requested, as on a GPU, and not when the system has woken a thread. A stream
/// without copies sleeps.
inline constexpr Nanoseconds kStaysAwake = 20'000'000;

/// Copy to be made. The memory that it uses must live until it is done.
struct CopyJob {
  std::function<void()> copy;  ///< `wait` rethrows its exception
  CopyDirection direction = CopyDirection::kD2h;
  Bytes bytes = 0;
  std::int64_t tag = 0;  ///< repeated in the record
  bool is_copy = true;   ///< false: it gets no record and no cap
};

/// Stream of copies on its own thread, beside the computing thread: one copy at a time, in order. With a cap,
/// a copy takes at least `latency + bytes / bandwidth`, as over a slower link.
class CopyStream {
 public:
  /// Position in the stream. It is reached when that many copies are done.
  using Event = std::uint64_t;

  /// Starts the thread. A direction of `cap` with bytes_per_second 0 is not capped. The thread sleeps after
  /// `stays_awake_ns` without a copy. Throws Error (environment) if the machine has no thread left.
  explicit CopyStream(const Link& cap, Nanoseconds stays_awake_ns = kStaysAwake);
  ~CopyStream();  ///< finishes the queued copies
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  Event enqueue(CopyJob job);
  /// Calls `work` between the copies before it and those after it. If `work` throws, `wait` rethrows the
  /// exception.
  Event call(std::function<void()> work) {
    return enqueue({std::move(work), CopyDirection::kD2h, 0, 0, /*is_copy=*/false});
  }
  /// Restricts the stream to these cores, from the next copy on.
  void copy_on(const std::vector<int>& cores) {
    enqueue({[&cores] { stay_on(cores); }, CopyDirection::kD2h, 0, 0});
    take_records();  // the change is done when this returns
  }

  /// Returns the time for a cache line to go from the calling thread to the copying thread and back, while
  /// nothing is copied. It is the minimum over some short series, so other load on these cores has no effect.
  Nanoseconds time_round_trip();

  bool is_reached(Event event) const { return completed_.load(std::memory_order_acquire) >= event; }
  /// Returns when `event` is reached. Rethrows the exception of its copy, unless records were taken since.
  /// The caller stays awake meanwhile, because it stands for a compute stream, which keeps its core and its
  /// caches; a thread that sleeps loses both.
  void wait(Event event) const;

  /// Waits until nothing is queued. `wait` still rethrows the exceptions of copies.
  void finish();
  /// Calls finish, then returns the records since the last call.
  std::vector<CopyRecord> take_records();

 private:
  void run();
  std::optional<CopyJob> next_job();
  void stay_awake() const;
  void run_one(CopyJob job);
  void tell_failure(Event event) const;

  Link cap_;
  Nanoseconds stays_awake_ns_;
  mutable std::mutex mutex_;
  std::condition_variable queued_;
  std::condition_variable done_;
  std::deque<CopyJob> jobs_;
  std::vector<CopyRecord> records_;
  std::map<Event, std::exception_ptr> failures_;  ///< by copies since the last take_records
  std::atomic<bool> has_failures_ = false;        ///< set before `completed_` shows that the copy is done
  std::atomic<Event> enqueued_ = 0;
  std::atomic<Event> completed_ = 0;
  bool asleep_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread worker_;  // last: it uses the other members
};

}  // namespace offprof

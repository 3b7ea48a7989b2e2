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

#include "engine/copy_record.h"
#include "engine/host/cores.h"
#include "traces/link.h"
#include "traces/steady_clock.h"
#include "traces/units.h"

namespace offprof {

/// After its last copy a stream stays awake for longer than a step computes between two copies: so that
/// copies begin when they are asked for, as on a GPU, and not when the system has woken a thread. None asked
/// for, none is awake.
inline constexpr Nanoseconds kStaysAwake = 20'000'000;

/// One copy to be made. What it touches must live until it is done.
struct CopyJob {
  std::function<void()> copy;  ///< what it throws, `wait` throws for its event
  CopyDirection direction = CopyDirection::kD2h;
  Bytes bytes = 0;
  std::int64_t tag = 0;  ///< comes back in the record
  bool is_copy = true;   ///< false: no record of it, and no cap
};

/// A stream of copies on a thread of its own: one at a time, first come first served, beside the thread that
/// computes. With a cap, a copy takes at least `latency + bytes / bandwidth`, as over a slower link.
class CopyStream {
 public:
  /// A point of the stream: it is reached when that many copies are done.
  using Event = std::uint64_t;

  /// A direction of `cap` with bytes_per_second 0 is not capped. `stays_awake_ns` after its last copy it
  /// sleeps. Throws Error (environment) where the machine has no thread for it.
  explicit CopyStream(const Link& cap, Nanoseconds stays_awake_ns = kStaysAwake);
  ~CopyStream();  ///< finishes what is queued
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  Event enqueue(CopyJob job);
  /// Calls `work` between the copies before it and those after it. What it throws, `wait` throws for its
  /// event.
  Event call(std::function<void()> work) {
    return enqueue({std::move(work), CopyDirection::kD2h, 0, 0, /*is_copy=*/false});
  }
  /// From the next copy on, on these cores alone.
  void copy_on(const std::vector<int>& cores) {
    enqueue({[&cores] { stay_on(cores); }, CopyDirection::kD2h, 0, 0});
    take_records();  // it is done then
  }

  /// How long a cache line takes from the calling thread to the one that copies and back, each on a core of
  /// its own and nothing being copied: the least of some short series, so what else runs there is not in it.
  Nanoseconds time_round_trip();

  bool is_reached(Event event) const { return completed_.load(std::memory_order_acquire) >= event; }
  /// Returns when `event` is reached; throws then what its copy threw, if it did and no records were taken
  /// since. Stays awake meanwhile, as the compute stream that it stands for keeps
  /// what it has: a thread that sleeps leaves its core, and finds the caches cold.
  void wait(Event event) const;

  /// Waits until nothing is queued. What copies threw, `wait` still throws.
  void finish();
  /// Likewise, and hands out the records since the last call.
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
  std::map<Event, std::exception_ptr> failures_;  ///< of copies since the last take_records
  std::atomic<bool> has_failures_ = false;        ///< set before `completed_` says that the copy is done
  std::atomic<Event> enqueued_ = 0;
  std::atomic<Event> completed_ = 0;
  bool asleep_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread worker_;  // last: it uses the others
};

}  // namespace offprof

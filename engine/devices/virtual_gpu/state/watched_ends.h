#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "traces/base/units.h"

namespace offprof {

/// The ends of collectives, as the watchdogs of PyTorch's ProcessGroupNCCL see them. A watchdog is a thread
/// that looks every 100 ms which ones have ended. PyTorch keeps the tensors of a collective on a stream of
/// its own until the program has waited for it, or a watchdog has seen its end and the next collective
/// begins. DDP never waits for its all-reduces, so its memory would depend on the real time of that thread.
/// Here a watchdog sees an end as if it had looked at the last multiple of 100 ms of the host's virtual time.
/// The caller holds the lock of ExecutionState.
class WatchedEnds {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr Nanoseconds kPeriod = 100'000'000;  ///< kWatchdogThreadSleepMillis of ProcessGroupNCCL
  /// After so much real time a watchdog sees what is: a process that does not destroy its groups cannot end
  /// before. PyTorch gives up collectives that take minutes.
  static constexpr std::chrono::seconds kMostHidden{20};

  /// A kernel of the program ran on the stream. Collectives there are synchronous: no tensors are kept.
  void computed_on(StreamId stream) {
    if (stream != computing_) computing_streams_.insert(computing_.emplace(stream));
  }
  /// A collective was given to the stream. The next event that is recorded there is its end.
  void given(StreamId stream) {
    is_recorded_next_ = !has_given_up_ && !computing_streams_.contains(stream);
    stream_ = stream;
  }
  /// An event was recorded, which will be reached at that virtual time.
  void event_recorded(EventId event, StreamId stream, Nanoseconds reached, Clock::time_point now) {
    ends_.erase(event);
    if (!is_recorded_next_ || stream != stream_) return;
    is_recorded_next_ = false;
    ends_.emplace(event, End{reached, now});
  }
  void event_destroyed(EventId event) { ends_.erase(event); }
  /// The program has waited for the event: PyTorch drops the tensors at once.
  void event_waited_for(EventId event) { ends_.erase(event); }

  /// Makes the ends visible that have been reached at this virtual time.
  void look(Nanoseconds now) { looked_ = std::max(looked_, now); }
  /// Makes the ends visible that the watchdogs would have seen at this virtual time.
  void look_periodically(Nanoseconds now) { look(now / kPeriod * kPeriod); }
  /// Makes all ends visible.
  void show_all() { ends_.clear(); }
  /// Makes all ends visible, since the watchdogs have not looked in time. If none ever has, hides none from
  /// then on: a program that calls NCCL without ProcessGroupNCCL waits for them once.
  void give_up() {
    show_all();
    busy_.clear();
    has_given_up_ = !has_looked_once_;
  }
  /// Returns true if the watchdogs have seen all ends that are visible, and told PyTorch.
  bool has_looked() const {
    return busy_.empty() &&
           std::ranges::none_of(ends_, [this](const auto& end) { return end.second.reached <= looked_; });
  }

  /// Returns true if the end is still hidden from the watchdog, a thread. If not, it tells PyTorch next.
  bool hides(EventId event, std::thread::id watchdog, Clock::time_point now) {
    const auto found = ends_.find(event);
    if (found == ends_.end()) return false;
    if (found->second.reached > looked_ && now - found->second.recorded < kMostHidden) return true;
    ends_.erase(found);
    busy_.insert(watchdog);
    return false;
  }
  /// The watchdog has told PyTorch which end it saw. Returns false if it saw none since the last call.
  bool has_told(std::thread::id watchdog) {
    if (busy_.erase(watchdog) == 0) return false;
    return has_looked_once_ = true;
  }

 private:
  struct End {
    Nanoseconds reached = 0;
    Clock::time_point recorded;
  };

  std::unordered_map<EventId, End> ends_;
  std::unordered_set<StreamId> computing_streams_;
  std::optional<StreamId> computing_;         ///< of the last kernel
  std::unordered_set<std::thread::id> busy_;  ///< watchdogs that have not told PyTorch yet
  Nanoseconds looked_ = 0;
  bool is_recorded_next_ = false, has_looked_once_ = false, has_given_up_ = false;
  StreamId stream_ = nullptr;
};

}  // namespace offprof

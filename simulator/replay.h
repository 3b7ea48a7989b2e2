#pragma once

#include "engine/schedule/scheduler.h"
#include "simulator/step.h"
#include "simulator/virtual_clock.h"
#include "simulator/virtual_memory.h"
#include "traces/link.h"
#include "traces/metrics.h"
#include "traces/policy.h"

namespace offprof {

/// For a replay whose times nobody looks at: memory does not depend on the link.
inline constexpr Link kAnyLink = {{1e9, 0}, {1e9, 0}};

/// Listens to a replay. Every call comes in program order; times are on the compute stream's virtual clock.
class ReplayListener : public StorageListener {
 public:
  /// Event number `index` of Step::events() is about to be replayed; the compute before it is done.
  virtual void on_event_begin(std::size_t index) { (void)index; }
  /// It has been replayed, waits included.
  virtual void on_event(std::size_t index, Nanoseconds now) { (void)index, (void)now; }
  virtual void on_command(const Command& command, Nanoseconds now) { (void)command, (void)now; }
  virtual void on_copy(const Command& command, const VirtualClock::Copy& copy) { (void)command, (void)copy; }
  /// The compute stream stood still until `now`, for `stall` (0: the copy was done already).
  virtual void on_wait(const Command& command, Nanoseconds stall, Nanoseconds now) {
    (void)command, (void)stall, (void)now;
  }
  /// Live device bytes changed, or may have.
  virtual void on_memory(Bytes device_bytes, Bytes host_bytes, Nanoseconds now) {
    (void)device_bytes, (void)host_bytes, (void)now;
  }
  /// A copy out takes device memory for the moment: see Step::staging_bytes.
  virtual void on_staging(Bytes bytes) { (void)bytes; }
  virtual void on_placement(SavedId tensor, const PackDecision& decision) { (void)tensor, (void)decision; }
};

/// What a replay of one step under a policy comes to.
struct Prediction {
  Metrics metrics;
  std::size_t peak_event = 0;  ///< index in Step::events() during which the device peak was reached
};

/// Replays the step under `policy` with the scheduler that the engine runs: memory and copied bytes are
/// exact, times are those of virtual clocks over `link`. The caching allocator's figures stay absent:
/// predict_cache has them.
Prediction replay(const Step& step, const Policy& policy, const Link& link,
                  ReplayListener* listener = nullptr);

}  // namespace offprof

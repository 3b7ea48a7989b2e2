#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/schedule/scheduler.h"
#include "simulator/step.h"
#include "simulator/virtual_clock.h"
#include "simulator/virtual_memory.h"
#include "traces/link.h"
#include "traces/metrics.h"
#include "traces/policy.h"
#include "traces/timeline.h"

namespace offprof {

/// For a replay whose times nobody looks at: memory does not depend on the link.
inline constexpr Link kAnyLink = {{1e9, 0}, {1e9, 0}};

/// Why the compute stream stands still.
enum class StallReason : std::uint8_t {
  kStashFull,     ///< a tensor is to join the stash, and the copy out of the oldest in it is not done
  kStashEmptied,  ///< backward has begun, where TRL's rules empty the stash, and a copy out is not done
  kNoStash,       ///< no stash takes the tensor, so its device copy must go, and its copy out is not done
  kReleased,      ///< autograd lets go of the tensor before its copy is done
  kReloadLate,    ///< backward needs the tensor, whose reload was asked for too late
  kLink,          ///< the link has not come to the copy yet: it is busy with others, or the stream is waking
  kWeights,       ///< an operator needs weights that were fetched too late, or others are to be saved first
  kLaunch,        ///< the host has not launched the next kernel yet
  kDisk,          ///< the disk has not written yet what must go, or not read yet what is needed
};

/// `stash_full`, ...: as reports and traces have it.
std::string_view to_string(StallReason reason);
/// Likewise a sentence for people.
std::string_view describe(StallReason reason);

/// The compute stream stood still.
struct Stall {
  StallReason reason = StallReason::kLink;
  SavedId tensor = -1;  ///< whose copy it waited for; -1: none's, as for kLaunch
  Bytes bytes = 0;      ///< of that copy
  Nanoseconds begin_ns = 0;
  Nanoseconds duration_ns = 0;        ///< never 0
  std::optional<Track> copy_track{};  ///< the direction of that copy; nullopt for kLaunch
};

/// Listens to a replay. Every call comes in program order; times are on the compute stream's virtual clock.
class ReplayListener : public StorageListener {
 public:
  /// Event number `index` of Step::events() is about to be replayed; the compute before it is done.
  virtual void on_event_begin(std::size_t index, Nanoseconds now) { (void)index, (void)now; }
  /// It has been replayed, waits included.
  virtual void on_event(std::size_t index, Nanoseconds now) { (void)index, (void)now; }
  virtual void on_command(const Command& command, Nanoseconds now) { (void)command, (void)now; }
  virtual void on_copy(const Command& command, const VirtualClock::Copy& copy) { (void)command, (void)copy; }
  /// The program's own, of weights.
  virtual void on_weight_copy(const VirtualClock::Copy& copy) { (void)copy; }
  /// kWriteDisk or kReadDisk: when the disk carries it out.
  virtual void on_disk_transfer(const Command& command, const VirtualClock::Copy& transfer) {
    (void)command, (void)transfer;
  }
  /// A wait for a copy may have three parts, each with its reason. All but those of kLaunch add up to the
  /// exposed time, those of kLaunch to the launch gaps.
  virtual void on_stall(const Stall& stall) { (void)stall; }
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
/// predict_cache has them. Throws Error (input) where the link is so slow, or the costs so high, that clocks
/// could run out of numbers.
Prediction replay(const Step& step, const Policy& policy, const Link& link,
                  ReplayListener* listener = nullptr);

class Replayer;

/// A replay that can be stopped before any event and copied, so that policies that decide alike up to there
/// share what lies before. What it comes to is what `replay` says of the whole step, to the last bit.
class PartialReplay {
 public:
  /// At the beginning of the step. All that is passed but the policy and the link must outlive it.
  PartialReplay(const Step& step, const Policy& policy, const Link& link, ReplayListener* listener = nullptr);
  PartialReplay(PartialReplay&&) noexcept;
  PartialReplay& operator=(PartialReplay&&) noexcept;
  ~PartialReplay();

  /// Index in Step::events() of the event before which it stands.
  std::size_t next_event() const;
  /// Goes on to before that event; does nothing where it has come as far. At most the number of events.
  void advance_to(std::size_t event);
  /// Another one that stands at the same point and goes on under `policy`, independent of this one. The
  /// policy has the same scheduler, copy streams and cap of host memory, and decides like this one's in all
  /// events before: see Scheduler::clone, and Divergence for how far that is. `listener` is told of what is
  /// still to come.
  PartialReplay fork(const Policy& policy, ReplayListener* listener = nullptr) const;
  /// Goes on to the end of the step; once.
  Prediction finish();

 private:
  explicit PartialReplay(std::unique_ptr<Replayer> replayer);

  std::unique_ptr<Replayer> replayer_;
};

}  // namespace offprof

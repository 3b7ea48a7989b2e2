#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/scheduler/limit_ranges.h"
#include "engine/scheduler/scheduler.h"
#include "simulator/clock/virtual_clock.h"
#include "simulator/replay/step.h"
#include "simulator/replay/virtual_memory.h"
#include "traces/model/link.h"
#include "traces/model/metrics.h"
#include "traces/model/policy.h"
#include "traces/model/timeline.h"

namespace offprof {

/// Link for replays whose times are not used. Memory does not depend on the link, but for
/// StepProgram::free_points.
inline constexpr Link kAnyLink = {{1e9, 0}, {1e9, 0}};

/// Reason why the compute stream is idle.
enum class StallReason : std::uint8_t {
  kStashFull,     ///< a tensor is about to join the stash, but the copy out of its oldest tensor is not done
  kStashEmptied,  ///< backward begins, at which TRL's rules empty the stash, but a copy out is not done
  kNoStash,       ///< no stash takes the tensor, so its device copy must go, but its copy out is not done
  kReleased,      ///< autograd releases the tensor before its copy is done
  kReloadLate,    ///< backward needs the tensor, but its reload was requested too late
  kLink,          ///< the link has not started the copy: it is busy with others, or the stream is waking up
  kParameters,    ///< an operator needs parameters that were loaded too late, or others must be saved first
  kLaunch,        ///< the host has not launched the next kernel yet
  kDisk,          ///< a write must end before memory is freed, or a read before a tensor is used
};

/// Returns the name used in reports and traces: `stash_full`, ...
std::string_view to_string(StallReason reason);
/// Returns a phrase that explains the reason to people.
std::string_view describe(StallReason reason);

/// An interval in which the compute stream was idle.
struct Stall {
  StallReason reason = StallReason::kLink;
  SavedId tensor = -1;  ///< whose copy it waited for; -1: no tensor's, as for kLaunch
  Bytes bytes = 0;      ///< size of that copy
  Nanoseconds begin_ns = 0;
  Nanoseconds duration_ns = 0;        ///< never 0
  std::optional<Track> copy_track{};  ///< direction of that copy; nullopt for kLaunch
};

/// A copy that a step leaves to the next, of saved tensors that it does not release.
struct CarriedCopy {
  std::int32_t renewal = 0;   ///< index in Step::renewals()
  std::int32_t storage = -1;  ///< of its own on the device, as numbered in the step that left it; -1: none
  Bytes device_bytes = 0;     ///< of that storage
  Bytes host_bytes = 0;

  /// Compares what the next step finds.
  bool operator==(const CarriedCopy& other) const {
    return renewal == other.renewal && device_bytes == other.device_bytes && host_bytes == other.host_bytes;
  }
};

/// Memory that a step leaves to the next, by which a step that carries tensors differs from policy to policy.
struct CarriedMemory {
  std::vector<char> is_held;  ///< by renewal: the engine holds its storage on the device
  std::vector<CarriedCopy> copies;

  bool operator==(const CarriedMemory&) const = default;
};

/// Returns what a step that offloads nothing leaves. Empty if the step carries no tensors.
CarriedMemory everything_on_device(const Step& step);
/// Returns what steps under `policy` leave, after a few of them.
CarriedMemory steady_memory(const Step& step, const Policy& policy, const Link& link);

/// Listener of a replay. Calls come in the order of the events; times are on the compute stream's virtual
/// clock.
class ReplayListener : public StorageListener {
 public:
  /// Called before event number `index` of Step::events() is replayed, after the computation before it.
  virtual void on_event_begin(std::size_t index, Nanoseconds now) { (void)index, (void)now; }
  /// Called after the event has been replayed, including its waits.
  virtual void on_event(std::size_t index, Nanoseconds now) { (void)index, (void)now; }
  virtual void on_command(const Command& command, Nanoseconds now) { (void)command, (void)now; }
  /// Called for CopyOut and CopyIn; the copy's track tells which.
  virtual void on_copy(const CopyCommand& command, const VirtualClock::Copy& copy) {
    (void)command, (void)copy;
  }
  /// Called for the step program's own copies: those of parameters.
  virtual void on_parameter_copy(const VirtualClock::Copy& copy) { (void)copy; }
  /// Called for WriteDisk and ReadDisk, with the times at which the disk carries the transfer out.
  virtual void on_disk_transfer(const CopyCommand& command, const VirtualClock::Copy& transfer) {
    (void)command, (void)transfer;
  }
  /// Called for each stall. One wait for a copy may have up to three parts, each with its own reason. The
  /// parts with reason kLaunch add up to the launch gaps, all others to the stall time of copies
  /// (`exposed_ns`).
  virtual void on_stall(const Stall& stall) { (void)stall; }
  /// Called at the start of the step, and when live bytes have changed, or may have.
  virtual void on_memory(Bytes device_bytes, Bytes host_bytes, Nanoseconds now) {
    (void)device_bytes, (void)host_bytes, (void)now;
  }
  /// Called when a copy out temporarily takes device memory: see Step::staging_bytes.
  virtual void on_staging(Bytes bytes) { (void)bytes; }
  virtual void on_placement(SavedId tensor, const PackDecision& decision) { (void)tensor, (void)decision; }
  /// Called before all other functions if the step carries tensors, for each storage older than the step that
  /// the policy did not leave on the device.
  virtual void on_absent(std::int32_t storage) { (void)storage; }
  /// Called after that for each copy that the step before has left on the device, with its storage now.
  virtual void on_carried(const CarriedCopy& copy, std::int32_t storage) { (void)copy, (void)storage; }
};

/// Result of the replay of one step under a policy.
struct Prediction {
  CarriedMemory carried;  ///< that the step leaves
  Metrics metrics;
  std::size_t peak_event = 0;  ///< index in Step::events() of the event in which the device peak was reached
};

/// Replays the step under `policy` with the same scheduler that the engine runs. Memory and copied bytes are
/// exact; times are those of virtual clocks over `link`. The figures of the caching allocator stay absent:
/// predict_cache computes them. Throws Error (input) if the link is so slow, or the costs so high, that the
/// clocks could overflow.
///
/// The step begins with steady_memory.
Prediction replay(const Step& step, const Policy& policy, const Link& link,
                  ReplayListener* listener = nullptr);
/// Returns true if all steps under `policy` leave the same, the first of them too. Under a limit of host
/// memory, the copies of the step before leave less room, so steps may offload other tensors for a while or
/// in turns.
bool leaves_the_same(const Step& step, const Policy& policy, const Link& link);
/// Same as replay for a step that begins with `carried`.
Prediction replay_after(const CarriedMemory& carried, const Step& step, const Policy& policy,
                        const Link& link, ReplayListener* listener = nullptr);

class Replayer;

/// A replay that can be stopped before any event and copied, so that policies with equal decisions up to that
/// event share the replay of the events before it. Its result equals that of `replay` over the whole step, to
/// the last bit.
class PartialReplay {
 public:
  /// Begins at the start of the step. All arguments except the policy and the link must outlive the object.
  PartialReplay(const Step& step, const Policy& policy, const Link& link, ReplayListener* listener = nullptr);
  PartialReplay(PartialReplay&&) noexcept;
  PartialReplay& operator=(PartialReplay&&) noexcept;
  ~PartialReplay();

  /// Returns the index in Step::events() of the next event to replay.
  std::size_t next_event() const;
  /// Replays up to, but not including, `event`, which is at most the number of events. Does nothing if the
  /// replay has already come that far.
  void advance_to(std::size_t event);
  /// Returns a replay that is paused at the same point and continues under `policy`, independent of this one.
  /// `policy` must be this replay's own, or one that has agreed with it on every event up to this point (see
  /// agrees). `listener` is notified of later events only.
  PartialReplay fork(const Policy& policy, ReplayListener* listener = nullptr) const;
  /// True if the next event would have the same effects under `policy`, which must have agreed on all events
  /// before it. May be false where the effects would be the same. Only the first event, packs and unpacks can
  /// make a difference.
  bool agrees(const Policy& policy) const;
  /// Returns the limits with which everything replayed so far would have been the same; nullopt under TRL's
  /// rules.
  std::optional<LimitRanges> limit_ranges() const;
  /// Replays to the end of the step. May be called once.
  Prediction finish();

 private:
  explicit PartialReplay(std::unique_ptr<Replayer> replayer);

  std::unique_ptr<Replayer> replayer_;
};

}  // namespace offprof

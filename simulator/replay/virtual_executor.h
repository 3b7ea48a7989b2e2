#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "simulator/clock/virtual_clock.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/replayed_disk.h"
#include "simulator/replay/step.h"
#include "simulator/replay/virtual_memory.h"

namespace offprof {

/// Executes the scheduler's commands on virtual memory and virtual clocks.
class VirtualExecutor final : public Executor {
 public:
  VirtualExecutor(const Step& step, const Policy& policy, const Link& link,
                  std::span<const RuledPlacement> placements, const CarriedMemory& carried,
                  ReplayListener* listener)
      : step_(step),
        placements_(placements),
        memory_(step.storage_bytes(), resident_bytes(step, carried), listener),
        clock_(link, has_one_copy_stream(policy),
               step.work().empty() ? VirtualClock::Computes::kOnHost : VirtualClock::Computes::kBesideHost,
               step.costs()),
        copies_tensors_(traits_of(policy.scheduler).copies_tensors),
        copy_of_(step.requests().size(), -1),
        listener_(listener) {
    for (const std::int32_t storage : step.residents()) memory_.hold_resident(storage);
    if (step.carries_tensors()) begin_with(carried);
  }

  /// Returns the bytes that are on the device when the step begins.
  static Bytes resident_bytes(const Step& step, const CarriedMemory& carried);

  /// Sets the listener of all further calls.
  void set_listener(ReplayListener* listener) {
    listener_ = listener;
    memory_.set_listener(listener);
  }

  void execute(const Command& command) override;
  bool try_execute(const RefusableCommand& command) override;
  Bytes older_host_bytes() const override { return older_host_bytes_; }

  /// Drops the program's hold of a storage that is older than the step (Step::let_goes).
  void let_go(std::int32_t storage);
  /// Drops all holds of such a storage that are older than the step, and the copies that the step before has
  /// left.
  void free_older(std::int32_t storage);
  /// Returns what the step leaves, at its end.
  CarriedMemory carried() const;

  /// Parameter offload, where parameters are on the device only around their uses. The step program begins a
  /// copy into the storage, waits for that copy, or copies the storage out and waits for that, and for the
  /// disk if parameters go there.
  void fetch_parameters(std::int32_t storage);
  void wait_for_parameters(std::int32_t storage) { wait(fetches_.at(storage), StallReason::kParameters, -1); }
  void save_parameters(std::int32_t storage);

  /// Returns the storage with the tensor's values for the node that has just unpacked it.
  std::int32_t device_storage(SavedId tensor) const {
    const CopyId copy = copy_of_[tensor];
    return copy < 0 ? own_storage(tensor) : copies_[copy].device_storage;
  }
  RuledPlacement rule(SavedId tensor) const {
    return placements_.empty() ? RuledPlacement() : placements_[tensor];
  }
  void set_copy(SavedId tensor, CopyId copy) { copy_of_[tensor] = copy; }
  /// Sets the current event of the step program, from which the reason of a stall is derived.
  void set_event(EventKind kind, std::int32_t id) {
    event_ = kind;
    event_id_ = id;
  }

  VirtualMemory& memory() { return memory_; }
  VirtualClock& clock() { return clock_; }
  Bytes host_bytes() const { return host_bytes_; }
  Bytes host_peak_bytes() const { return host_peak_bytes_; }
  Bytes d2h_bytes() const { return d2h_bytes_; }
  Bytes h2d_bytes() const { return h2d_bytes_; }
  const ReplayedDisk& disk() const { return disk_; }

 private:
  struct DeviceCopy {
    SavedId tensor = -1;
    std::int32_t device_storage = -1;
    VirtualClock::Copy last_copy;
    Bytes host_bytes = 0;
  };
  /// A copy of the step before.
  struct OlderCopy {
    std::int32_t storage = -1;  ///< that it is a copy of: Renewal::old_storage
    std::int32_t device_storage = -1;
    Bytes host_bytes = 0;
  };

  std::int32_t own_storage(SavedId tensor) const {
    return static_cast<std::int32_t>(step_.requests()[tensor].storage);
  }

  void run(const Keep& command) { memory_.hold(own_storage(command.tensor)); }
  void run(const ReleaseKept& command) { memory_.free_unpacked(own_storage(command.tensor)); }
  void run(const CopyOut& command);
  void run(const WaitOut& command);
  void run(const Drop& command) { memory_.free_unpacked(copies_[command.copy].device_storage); }
  void run(const CopyIn& command);
  void run(const WaitIn& command);
  void run(const FreeHost& command) {
    host_bytes_ -= command.bytes;
    copies_[command.copy].host_bytes = 0;
  }
  void run(const Encode& command);
  void run(const Decode& command);
  void run(const DropForRecompute& command);
  void run(const Recompute& command);
  void run(const TakeDisk& command) { disk_.take(command); }
  void run(const WriteDisk& command);
  void run(const WaitWrite& command) { wait_for_disk(disk_.last(command.copy), command.tensor); }
  void run(const ReadDisk& command);
  void run(const WaitRead& command) { wait_for_disk(disk_.last(command.copy), command.tensor); }
  void run(const FreeDisk& command) { disk_.free(command); }

  void stage(SavedId tensor);
  void begin_with(const CarriedMemory& carried);
  void take_host(CopyId copy, Bytes bytes);
  void wait_for_disk(const VirtualClock::Copy& transfer, SavedId tensor);
  const TransformCost& cost_of(SavedId tensor) const;
  std::int32_t use(const TransformUse& use);
  StallReason reason_to_wait_out(SavedId tensor) const;
  void wait(const VirtualClock::Copy& copy, StallReason reason, SavedId tensor);

  const Step& step_;
  std::span<const RuledPlacement> placements_;
  VirtualMemory memory_;
  VirtualClock clock_;
  bool copies_tensors_;          ///< `trl`: each tensor on its own, dense; otherwise whole storages
  std::vector<CopyId> copy_of_;  ///< by saved tensor; -1: kept
  std::vector<DeviceCopy> copies_;
  std::unordered_map<std::int32_t, VirtualClock::Copy> fetches_;  ///< of parameters, by storage
  std::unordered_map<std::int32_t, int> older_holds_;             ///< by old storage of a renewal
  std::vector<OlderCopy> older_copies_;
  Bytes host_bytes_ = 0, host_peak_bytes_ = 0;
  Bytes older_host_bytes_ = 0;  ///< of these, that of older copies
  Bytes d2h_bytes_ = 0, h2d_bytes_ = 0;
  ReplayedDisk disk_;
  EventKind event_ = EventKind::kPhase;
  std::int32_t event_id_ = -1;
  ReplayListener* listener_;
};

}  // namespace offprof

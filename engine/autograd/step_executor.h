#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "engine/autograd/held_tensor.h"
#include "engine/autograd/step_copies.h"
#include "engine/autograd/step_guide.h"
#include "engine/autograd/step_listener.h"
#include "engine/autograd/step_recompute.h"
#include "engine/devices/device.h"
#include "engine/scheduler/scheduler.h"
#include "traces/model/policy.h"

namespace offprof {

/// Executes the scheduler's commands on a device: holds a step's saved tensors, and moves their copies.
class StepExecutor final : public Executor {
 public:
  /// `device` and `guide` must outlive this object. `listener` (may be null) must outlive all calls before
  /// stop_listening.
  StepExecutor(Device& device, const Policy& policy, const StepGuide& guide, StepListener* listener);

  void execute(const Command& command) override;
  bool try_execute(const RefusableCommand& command) override;
  Bytes older_host_bytes() const override { return copies_.older_host_bytes(); }
  void stop_listening() { listener_ = nullptr; }

  /// Holds a tensor that autograd saves: see HeldTensor. Returns its number.
  SavedId hold(const at::Tensor& value, bool is_variable);
  /// Drops the shell's storage: from here on the copy holds the tensor's values.
  void hand_over(SavedId tensor, CopyId copy);
  /// Drops the shell: the tensor will not be unpacked again.
  void release(SavedId tensor) { held_[tensor].shell.reset(); }
  /// Returns the tensor of the shell, whose number is `tensor`, with the values that are on the device.
  at::Tensor restore(SavedId tensor, const Shell& shell) const;
  /// Returns true if something that backward made shares the storage that the tensor was reloaded to.
  bool is_reload_used_elsewhere(SavedId tensor) const { return reload_use_count(tensor) > 1; }
  /// Returns true if the tensor was reloaded to a storage that only its copy still holds.
  bool is_reload_unused(SavedId tensor) const { return reload_use_count(tensor) == 1; }
  /// Throws if data that was read from the disk in the step differs from the data that was written.
  void finish_disk_reads() { copies_.finish_disk_reads(); }

  const HeldTensor& held(SavedId tensor) const { return held_[tensor]; }
  const StepCopies& copies() const { return copies_; }
  StepRecompute& recompute() { return recompute_; }
  const StepRecompute& recompute() const { return recompute_; }
  const std::vector<Command>& commands() const { return commands_; }
  /// Number of commands that the device had no memory for, and that were delayed or that other memory was
  /// freed for.
  int refused_reloads() const { return refused_reloads_; }

 private:
  bool take(const TakeDisk& command) { return copies_.take_disk(command); }
  bool take(const OneOf<CopyIn, Decode, Recompute> auto& command);
  void take_memory_for(const OneOf<CopyIn, Decode> auto& command) { copies_.take_memory_for(command); }
  void take_memory_for(const Recompute& command) { copies_.take_memory(recompute_.recompute(command)); }

  void run(const Keep& /*command*/) {}  // the shell holds the tensor
  void run(const ReleaseKept& command) { release(command.tensor); }
  void run(const CopyOut& command);
  void run(const Encode& command);
  void run(const OneOf<CopyIn, Decode> auto& command);
  void run(const DropForRecompute& command);
  void run(const Recompute& command);
  void run(const TakeDisk& /*command*/) {}  // taken in try_execute
  void run(const OneOf<WaitOut, Drop, WaitIn, FreeHost, WriteDisk, WaitWrite, ReadDisk, WaitRead,
                       FreeDisk> auto& command) {
    copies_.run(command);
  }

  std::size_t reload_use_count(SavedId tensor) const;
  at::Tensor packed(SavedId tensor) const { return at::Tensor(held_[tensor].shell); }
  void report_hold(CopyId copy);
  void report_reload(CopyId copy);

  Device& device_;
  const StepGuide& guide_;
  StepListener* listener_;
  bool copies_tensors_;  ///< `trl`: copies each tensor densely; else whole storages
  StepCopies copies_;
  std::vector<HeldTensor> held_;
  StepRecompute recompute_;
  int refused_reloads_ = 0;
  std::vector<Command> commands_;
};

}  // namespace offprof

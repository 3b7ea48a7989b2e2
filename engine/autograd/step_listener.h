#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <span>

#include "engine/devices/device.h"
#include "engine/scheduler/scheduler.h"

namespace offprof {

class StepCopies;

/// Listens to a step. Every call is made on the thread that runs the step, in program order. on_hook_begin
/// and on_hook_end enclose the time that the engine takes from the model. The step's lock is held during
/// every call but on_pack_begin. So only on_pack_begin may wait for a lock whose holder may call the step:
/// Python's, for example, is held while Python frees a graph and thereby releases saved tensors.
class StepListener {
 public:
  virtual ~StepListener() = default;
  /// A step begins: again, if the one before was unlike the step that was asked for. Called before the first
  /// hook.
  virtual void on_step_begin() {}
  virtual void on_hook_begin() {}
  virtual void on_hook_end() {}
  /// A tensor is about to be saved; on_pack follows on the same thread unless saving fails.
  virtual void on_pack_begin() {}
  virtual void on_pack(SavedId /*tensor*/, const at::Tensor& /*value*/, const PackRequest& /*request*/,
                       const PackDecision& /*decision*/) {}
  /// The first tensor is about to be unpacked. `copies` are those of the step, which lives until it ends.
  virtual void on_backward_begin(const StepCopies& /*copies*/) {}
  virtual void on_unpack(SavedId /*tensor*/) {}
  virtual void on_release(SavedId /*tensor*/) {}
  /// Follows on_release if only the engine holds the memory that the tensor was reloaded to.
  virtual void on_unpacked_freed(SavedId /*tensor*/) {}
  virtual void on_node_end(std::span<const SavedId> /*tensors*/, std::span<const SavedId> /*escaped*/) {}
  virtual void on_backward_end() {}
  /// `command` is about to be executed.
  virtual void on_command_begin(const Command& /*command*/) {}
  /// `command` was executed between the two marks.
  virtual void on_command(const Command& /*command*/, Device::TimeMark /*begin*/, Device::TimeMark /*end*/) {}
  /// The engine holds `storage`, a storage of the model, for a copy out that it is about to start. It holds
  /// it until that copy's Drop.
  virtual void on_hold(CopyId /*copy*/, AllocationId /*allocation*/, const c10::Storage& /*storage*/) {}
  /// The engine has allocated device memory for a copy in that has bytes.
  virtual void on_reload(CopyId /*copy*/, AllocationId /*allocation*/) {}
  /// A copy of parameters into the allocation has started (on_fetch) or has been waited for (on_fetched);
  /// parameters have been copied out of it (on_save): see ParameterOffloader.
  virtual void on_fetch(AllocationId /*allocation*/) {}
  virtual void on_fetched(AllocationId /*allocation*/) {}
  virtual void on_save(AllocationId /*allocation*/) {}
  /// Returns true if the listener wants on_node_end even if the scheduler does not need it.
  virtual bool wants_node_ends() const { return false; }
};

}  // namespace offprof

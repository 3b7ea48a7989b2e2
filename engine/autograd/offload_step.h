#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/Exception.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/autograd/step_copies.h"
#include "engine/autograd/step_guide.h"
#include "engine/devices/device.h"
#include "engine/recompute/random_draws.h"
#include "engine/scheduler/scheduler.h"
#include "traces/model/ledger.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"

namespace torch::autograd {
struct Node;
}

namespace offprof {

/// Tensors that stay on the device for longer than a step, and so are never moved. They are known by storage,
/// so views and transposes are recognised.
struct Residents {
  std::unordered_map<AllocationId, StorageRole> roles;    ///< of parameters, buffers, inputs
  std::unordered_set<const c10::TensorImpl*> parameters;  ///< the parameters themselves
  /// Returns true for a storage that is on the device only around its uses (see ParameterOffloader); empty:
  /// none is.
  std::function<bool(const c10::Storage&)> is_parameter_group{};
};

/// Listens to a step. Every call is made on the thread that runs the step, in program order. on_hook_begin
/// and on_hook_end enclose the time that the engine takes from the model.
class StepListener {
 public:
  virtual ~StepListener() = default;
  virtual void on_hook_begin() {}
  virtual void on_hook_end() {}
  virtual void on_pack(SavedId /*tensor*/, const at::Tensor& /*value*/, const PackRequest& /*request*/,
                       const PackDecision& /*decision*/) {}
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
  /// it until that copy's kDrop.
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

/// The device has no memory to reload a saved tensor, even after everything that could be freed for it was
/// freed.
class ReloadOutOfMemory final : public c10::OutOfMemoryError {
 public:
  ReloadOutOfMemory(SavedId tensor, const std::string& message)
      : OutOfMemoryError({__func__, __FILE__, __LINE__}, message), tensor_(tensor) {}
  SavedId tensor() const { return tensor_; }

 private:
  SavedId tensor_;
};

/// The real executor: one training step under a policy. Autograd saves a tensor by `pack`, gets it back by
/// `unpack` and frees it by `release`. The scheduler decides; this class executes on a device. A graph that
/// outlives its step keeps working: the holder of a saved tensor holds the step.
///
/// The result of unpack has the values, sizes, strides and offset of the packed tensor (`trl`: reloaded
/// tensors are dense, as TRL's are). Unpacking a tensor that was modified in place since it was packed fails
/// with autograd's own error. A tensor that a lossy transform encoded comes back within the transform's error
/// bound.
///
/// If the device fails, the call throws the device's exception, and so do all later calls. The step is lost,
/// but all its memory is freed with its last tensor. A device that is out of memory for a reload fails only
/// if the scheduler has nothing more to free; then the call throws ReloadOutOfMemory.
///
/// Several threads may call at once, as those of a module that forks do. They take turns, in an order that
/// the next step need not repeat. PassRecorder rejects such a step.
class OffloadStep final : public Executor {
 public:
  /// `device` must outlive every saved tensor of the step. So must `listener` (may be null), unless
  /// stop_listening is called.
  OffloadStep(Device& device, const Policy& policy, StepGuide guide,
              std::shared_ptr<const Residents> residents, StepListener* listener);

  SavedId pack(const at::Tensor& value);
  at::Tensor unpack(SavedId tensor);
  /// Throws nothing: the next call of another function reports a failure.
  void release(SavedId tensor) noexcept;
  /// Announces that an operator is about to draw random numbers: see RandomDraws. Needed only if
  /// watches_draws returns true.
  void draw(const std::string& op);
  bool watches_draws() const { return draws_.has_value(); }
  /// Announces that the running autograd node has ended.
  void node_end();
  /// Announces that backward is done; called by the caller of backward.
  void backward_end();
  /// Stops all notifications of the listener.
  void stop_listening() { listener_ = nullptr; }

  void execute(const Command& command) override;
  bool try_execute(const Command& command) override;

  /// Returns the number of reloads that the device had no memory for, and that were delayed or that other
  /// memory was freed for.
  int refused_reloads() const { return refused_reloads_; }
  Bytes host_peak_bytes() const { return copies_.host_peak_bytes(); }
  Bytes d2h_bytes() const { return copies_.d2h_bytes(); }
  Bytes h2d_bytes() const { return copies_.h2d_bytes(); }
  const StepDiskCopies& disk() const { return copies_.disk(); }
  const Ledger& ledger() const { return ledger_; }
  const std::vector<Command>& commands() const { return commands_; }

 private:
  using Shell = c10::intrusive_ptr<c10::TensorImpl>;

  /// A saved tensor: the whole tensor if it is kept, all of it but its storage if it is offloaded.
  struct Saved {
    Shell shell;
    std::uint32_t version = 0;
    CopyId copy = -1;
    c10::VariableVersion counter{};  ///< of its version; outlives the shell
  };
  /// Content of a storage when a tensor was saved. The version alone does not identify it: pieces of one
  /// storage may each have a counter (unsafe_chunk, which LSTM cells use).
  struct Content {
    c10::VariableVersion counter;  ///< held so that its address stays its identity
    std::uint32_t version = 0;
    at::ScalarType encoded_as = at::ScalarType::Undefined;  ///< if encoded, the type of the numbers
  };
  class HookScope;
  class NodeEndHook;

  template <typename Call>
  auto scheduled(Call call);
  void ask_scheduler_for(SavedId tensor, const Shell& shell);
  PackRequest describe(const at::Tensor& value);
  RuledPlacement rule_for(SavedId tensor, const at::Tensor& value, const PackRequest& request) const;
  LedgerKey ledger_key(const PackDecision& decision) const;
  std::uint32_t content_of(const at::Tensor& value, AllocationId allocation, at::ScalarType encoded_as);
  Movability movability_of(const at::Tensor& value, std::optional<AllocationId> allocation,
                           StorageRole role) const;
  StorageRole role_of(AllocationId allocation) const;
  void check_version(const Saved& saved) const;
  at::Tensor restore(const Shell& shell, const StepCopies::Copy& copy) const;
  void watch_node_end();
  bool take_disk(const Command& command);
  void run(const Command& command);
  bool is_used_elsewhere(CopyId copy) const;
  void tell_hold(CopyId copy);
  void tell_reload(CopyId copy);
  void check_shared_type(const Saved& saved) const;
  /// A tensor to recompute: its recompute steps, and the contents that they read.
  struct Recompute {
    SavedId tensor = -1;
    std::shared_ptr<const ExecutableRecomputation> recomputation;
    std::vector<WatchedContent> sources;
  };
  void discard(const Command& command);
  std::optional<WatchedContent> watched(const RecomputeArgument& argument) const;
  static std::optional<RandomDraws> draws_for(const StepGuide& guide, c10::Device device);
  c10::Storage recomputed(const Command& command) const;
  c10::Storage storage_of(SavedId tensor) const;

  std::exception_ptr failure_;  ///< the scheduler's first failure
  /// Recursive: releasing an object inside a call may call back.
  std::recursive_mutex mutex_;
  Device& device_;
  bool copies_tensors_;  ///< `trl`: copies each tensor densely; else whole storages
  StepCopies copies_;
  StepGuide guide_;
  std::shared_ptr<const Residents> residents_;
  StepListener* listener_;
  AllocationId first_allocation_;  ///< older storages are residents
  std::unique_ptr<Scheduler> scheduler_;
  bool wants_node_ends_;
  std::unordered_map<AllocationId, std::vector<Content>>
      contents_;  ///< of movable storages, in the order of saving
  std::vector<Saved> saved_;
  std::int32_t rule_transform_ = -1;                   ///< of the tensor being packed: see ResolvedPlacement
  const Recomputation* rule_recomputation_ = nullptr;  ///< of the tensor being packed
  std::unordered_map<CopyId, Recompute> recomputes_;   ///< of copies that do not exist
  std::optional<RandomDraws> draws_;                   ///< set if some are drawn again
  bool is_backward_ = false;                           ///< a saved tensor was unpacked
  int refused_reloads_ = 0;
  const torch::autograd::Node* watched_node_ = nullptr;
  std::vector<SavedId> node_tensors_;  ///< unpacked by it
  std::vector<SavedId> node_escaped_;
  Ledger ledger_;
  std::vector<Command> commands_;
};

}  // namespace offprof

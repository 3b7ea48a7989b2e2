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

#include "engine/device.h"
#include "engine/random_draws.h"
#include "engine/schedule/scheduler.h"
#include "engine/step_copies.h"
#include "engine/step_guide.h"
#include "traces/ledger.h"
#include "traces/policy.h"
#include "traces/program.h"

namespace torch::autograd {
struct Node;
}

namespace offprof {

/// What is on the device for longer than a step, and so is never moved. Known by storage, so views and
/// transposes are recognised.
struct Residents {
  std::unordered_map<AllocationId, StorageRole> roles;    ///< of parameters, buffers, inputs
  std::unordered_set<const c10::TensorImpl*> parameters;  ///< the parameters themselves
  /// What is on the device only around its uses (see WeightPager); empty: nothing is.
  std::function<bool(const c10::Storage&)> is_paged{};
};

/// Listens to a step; every call is made on the thread that runs it, in program order. on_hook_begin and
/// on_hook_end enclose whatever time the engine takes of the program's. What a listener does not override
/// it does not hear.
class StepListener {
 public:
  virtual ~StepListener() = default;
  virtual void on_hook_begin() {}
  virtual void on_hook_end() {}
  virtual void on_pack(SavedId /*tensor*/, const at::Tensor& /*value*/, const PackRequest& /*request*/,
                       const PackDecision& /*decision*/) {}
  virtual void on_unpack(SavedId /*tensor*/) {}
  virtual void on_release(SavedId /*tensor*/) {}
  /// Follows on_release where nobody but the engine holds the memory that the tensor was reloaded to.
  virtual void on_let_go(SavedId /*tensor*/) {}
  virtual void on_node_end(std::span<const SavedId> /*tensors*/, std::span<const SavedId> /*escaped*/) {}
  virtual void on_backward_end() {}
  /// `command` is about to be carried out.
  virtual void on_command_begin(const Command& /*command*/) {}
  /// `command` was carried out between the two marks.
  virtual void on_command(const Command& /*command*/, Device::TimeMark /*begin*/, Device::TimeMark /*end*/) {}
  /// The engine holds `storage`, the program's, for a copy out that it is about to begin: until that copy's
  /// kDrop.
  virtual void on_hold(CopyId /*copy*/, AllocationId /*allocation*/, const c10::Storage& /*storage*/) {}
  /// The engine has allocated device memory for a copy in, which has bytes.
  virtual void on_reload(CopyId /*copy*/, AllocationId /*allocation*/) {}
  /// A copy of weights into the allocation has begun, has been waited for; and weights have been copied out
  /// of it: see WeightPager.
  virtual void on_fetch(AllocationId /*allocation*/) {}
  virtual void on_fetched(AllocationId /*allocation*/) {}
  virtual void on_save(AllocationId /*allocation*/) {}
  /// Whether it wants on_node_end where the scheduler does not need it.
  virtual bool wants_node_ends() const { return false; }
};

/// The device has no memory to bring a saved tensor back, whatever was let go of for it.
class ReloadOutOfMemory final : public c10::OutOfMemoryError {
 public:
  ReloadOutOfMemory(SavedId tensor, const std::string& message)
      : OutOfMemoryError({__func__, __FILE__, __LINE__}, message), tensor_(tensor) {}
  SavedId tensor() const { return tensor_; }

 private:
  SavedId tensor_;
};

/// The real executor: one training step under a policy. Tensors that autograd saves come in by `pack`, are
/// asked for by `unpack` and given up by `release`; the scheduler decides, this carries out over a device.
/// With it a graph that outlives its step keeps working: whoever holds a saved tensor of the step holds the
/// step.
///
/// What unpack returns has the values, sizes, strides and offset of what was packed (`trl`: reloaded tensors
/// are dense, as TRL's are). A tensor that was modified in place since it was packed is refused as autograd
/// itself refuses it. What a lossy transform packed comes back as near as the transform promises.
///
/// Where the device fails, the call throws what the device threw, and so do all after it: the step is lost,
/// but when the last of its tensors goes all its memory does. A device that is out of memory for a reload
/// fails only when the scheduler has nothing more to let go of; then the call throws ReloadOutOfMemory.
///
/// Threads may call it at once, as those of a module that forks do: they take turns, in an order that the
/// next step need not repeat. PassRecorder refuses such a step.
class OffloadStep final : public Executor {
 public:
  /// `device` must outlive every saved tensor of the step; `listener` (may be null) too, or stop_listening be
  /// called.
  OffloadStep(Device& device, const Policy& policy, StepGuide guide,
              std::shared_ptr<const Residents> residents, StepListener* listener);

  SavedId pack(const at::Tensor& value);
  at::Tensor unpack(SavedId tensor);
  /// Throws nothing: what fails here, the next other call tells.
  void release(SavedId tensor) noexcept;
  /// An operator is about to draw random numbers: see RandomDraws. It must be told only where it
  /// watches_draws.
  void draw(const std::string& op);
  bool watches_draws() const { return draws_.has_value(); }
  /// The autograd node that is running has ended.
  void node_end();
  /// Backward is done; the caller of backward says so.
  void backward_end();
  /// Nobody is told of anything from here on.
  void stop_listening() { listener_ = nullptr; }

  void execute(const Command& command) override;
  bool try_execute(const Command& command) override;

  /// Reloads for which the device had no memory, and which were put off or made room for.
  int refused_reloads() const { return refused_reloads_; }
  Bytes host_peak_bytes() const { return copies_.host_peak_bytes(); }
  Bytes d2h_bytes() const { return copies_.d2h_bytes(); }
  Bytes h2d_bytes() const { return copies_.h2d_bytes(); }
  const DiskCopies& disk() const { return copies_.disk(); }
  const Ledger& ledger() const { return ledger_; }
  const std::vector<Command>& commands() const { return commands_; }

 private:
  using Shell = c10::intrusive_ptr<c10::TensorImpl>;

  /// A saved tensor: the tensor itself where it is kept; where it is offloaded all of it but its storage.
  struct Saved {
    Shell shell;
    std::uint32_t version = 0;
    CopyId copy = -1;
    c10::VariableVersion counter{};  ///< of its version; outlives the shell
  };
  /// What a storage held when a tensor was saved. Its version alone does not tell: pieces of one storage may
  /// count each for itself (unsafe_chunk, of which LSTM cells are made).
  struct Content {
    c10::VariableVersion counter;  ///< held, so that its address stays its identity
    std::uint32_t version = 0;
    at::ScalarType packed_as = at::ScalarType::Undefined;  ///< to be packed as numbers of that type
  };
  class HookScope;
  class NodeEndHook;

  template <typename Call>
  auto scheduled(Call call);
  void ask_scheduler_for(SavedId tensor, const Shell& shell);
  PackRequest describe(const at::Tensor& value);
  RuledPlacement rule_for(SavedId tensor, const at::Tensor& value, const PackRequest& request) const;
  LedgerKey ledger_key(const PackDecision& decision) const;
  std::uint32_t content_of(const at::Tensor& value, AllocationId allocation, at::ScalarType packed_as);
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
  /// What is made again: by what, and of which contents.
  struct Remake {
    SavedId tensor = -1;
    std::shared_ptr<const ExecutableRecipe> recipe;
    std::vector<WatchedContent> sources;
  };
  void discard(const Command& command);
  std::optional<WatchedContent> watched(const RecipeArgument& argument) const;
  static std::optional<RandomDraws> draws_for(const StepGuide& guide, c10::Device device);
  c10::Storage remade(const Command& command) const;
  c10::Storage storage_of(SavedId tensor) const;

  std::exception_ptr failure_;  ///< the scheduler's first
  /// Recursive: what a call lets go of may call back.
  std::recursive_mutex mutex_;
  Device& device_;
  bool copies_tensors_;  ///< `trl`: each tensor densely; else whole storages
  StepCopies copies_;
  StepGuide guide_;
  std::shared_ptr<const Residents> residents_;
  StepListener* listener_;
  AllocationId first_allocation_;  ///< storages older than it are residents
  std::unique_ptr<Scheduler> scheduler_;
  bool wants_node_ends_;
  std::unordered_map<AllocationId, std::vector<Content>>
      contents_;  ///< of movable storages, in order of saving
  std::vector<Saved> saved_;
  std::int32_t rule_transform_ = -1;            ///< of the tensor that is being packed: see TensorPlacement
  const Recipe* rule_recipe_ = nullptr;         ///< likewise
  std::unordered_map<CopyId, Remake> remakes_;  ///< of copies that do not exist
  std::optional<RandomDraws> draws_;            ///< where some is drawn again
  bool is_backward_ = false;                    ///< a saved tensor was asked for
  int refused_reloads_ = 0;
  const torch::autograd::Node* watched_node_ = nullptr;
  std::vector<SavedId> node_tensors_;  ///< unpacked by it
  std::vector<SavedId> node_escaped_;
  Ledger ledger_;
  std::vector<Command> commands_;
};

}  // namespace offprof

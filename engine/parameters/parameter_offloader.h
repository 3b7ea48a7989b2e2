#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/devices/device.h"
#include "engine/parameters/parameter_store.h"
#include "engine/scheduler/parameter_scheduler.h"
#include "traces/base/units.h"

namespace c10 {
class OperatorHandle;
}

namespace offprof {

class StepListener;

/// Bytes copied over the device's link, and to the disk beside it.
struct ParameterTraffic {
  Bytes d2h = 0, h2d = 0;
  Bytes disk_write = 0, disk_read = 0;
};

/// Parameter offload: keeps parameters, their gradients, the optimizer's state, and values that wait between
/// layer slices off the device except while operators use them.
///
/// It works on storages. An evicted storage has no memory, but its tensors, all views and autograd's saved
/// tensors of it stay valid, and get the memory back when an operator needs it. While a Scope lives,
/// LibTorch's dispatcher calls the offloader before each operator with such a tensor. Operators do not
/// notice, so gradients are bitwise the same as without parameter offload. Tensors that a module keeps
/// outside its parameters and buffers are unknown to the offloader and stay.
///
/// If the device has no memory for the storages that an operator needs, the operator throws
/// c10::OutOfMemoryError.
class ParameterOffloader final : private ParameterExecutor {
 public:
  /// Smaller storages stay on the device: copying them costs more than their memory is worth.
  static constexpr Bytes kLeastBytes = 4 * kKiB;

  /// `device` must outlive this object. `window_bytes`: see ParameterScheduler. `least_bytes`: minimum size
  /// of a storage that is offloaded.
  ParameterOffloader(Device& device, std::unique_ptr<ParameterStore> store, Bytes window_bytes,
                     Bytes least_bytes = kLeastBytes);
  ~ParameterOffloader() override;
  ParameterOffloader(const ParameterOffloader&) = delete;
  ParameterOffloader& operator=(const ParameterOffloader&) = delete;

  /// Activates the offloader, while this object lives, for operators of this thread and of backwards that it
  /// starts.
  class Scope {
   public:
    explicit Scope(ParameterOffloader* offloader);  ///< nullptr: activates none
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::optional<c10::impl::IncludeDispatchKeyGuard> key_;
  };

  /// Returns the offloader of the living Scope; nullptr: there is none.
  static ParameterOffloader* current();

  /// Offloads the tensor's storage: it is on the device only while it is used. Ignores storages that are
  /// small or already adopted.
  void adopt(const at::Tensor& value);
  /// Adopts a parameter, and from now on each gradient that backward computes for it.
  void adopt_parameter(const at::Tensor& parameter);
  /// Adopts a parameter whose value is in a file: its memory is freed now, and each load reads the file until
  /// the parameter changes. `range` has the bytes of the whole storage. Returns false, and changes nothing,
  /// if the store reads no other files, or if adopt would ignore the storage.
  bool adopt_parameter_in_file(const at::Tensor& parameter, const FileRange& range);
  /// Adopts a value that the step has computed and uses later. Ignores values older than the allocation
  /// `made_since`: their owners keep them beyond the step.
  void adopt_for_step(const at::Tensor& value, AllocationId made_since);
  /// Returns the device's next allocation id.
  AllocationId next_allocation() const { return device_.next_allocation(); }
  /// Forgets the parameters' gradients, which the caller has set or sets to none. Loads of them are complete
  /// afterwards.
  void forget_gradients();

  /// Ends the step: evicts everything. A value adopted for the step that is still held, for example by an
  /// attribute of a module, is returned to its holder, on the device.
  void end_step();
  /// Makes the step that ended last the forecast for later ones.
  void learn();
  /// Keeps everything on the device until the next end_step, as without parameter offload.
  void bring_all();

  /// Sets the listener of copies over the link, each between on_hook_begin and on_hook_end; nullptr: none.
  void set_listener(StepListener* listener) { listener_ = listener; }
  /// Returns the traffic since the last call.
  ParameterTraffic take_traffic() { return std::exchange(traffic_, {}); }

  bool is_parameter_group(const c10::Storage& storage) const;
  Bytes window_bytes() const { return scheduler_.window_bytes(); }
  void set_window_bytes(Bytes bytes) { scheduler_.set_window_bytes(bytes); }
  Bytes most_used_bytes() const { return scheduler_.most_used_bytes(); }
  /// Returns the maximum of the device's host memory that the offloader uses.
  Bytes host_bytes() const {
    return store_->host_bytes(std::max(scheduler_.window_bytes(), scheduler_.most_used_bytes()));
  }

  /// Fallback function for the dispatcher.
  static void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

 private:
  struct Group {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::optional<ParameterStore::Slot> slot{};  ///< none: it was never evicted
    /// Held while its bytes are being loaded.
    c10::intrusive_ptr<c10::StorageImpl> coming{};
  };
  /// Groups of storages that each step makes anew: the gradients of one parameter, or values.
  struct GroupsOfStep {
    std::vector<ParameterGroupId> groups;  ///< in the order in which a step makes them
    std::size_t in_step = 0;               ///< number made so far in this step
  };
  class GradientHook;
  class Use;

  void fetch(ParameterGroupId group) override;
  void wait(ParameterGroupId group) override;
  void evict(ParameterGroupId group, bool changed) override;
  bool is_held(ParameterGroupId group) const override { return groups_[group].storage.use_count() > 0; }
  void save(ParameterGroupId group, const c10::Storage& storage);
  void forget_failures() noexcept;

  template <typename Copy, typename Tell>
  void copy(const c10::Storage& storage, const Copy& copy, const Tell& tell);
  bool is_adoptable(const c10::Storage& storage) const;
  void watch_gradient(const at::Tensor& parameter);
  ParameterGroupId add_group(const c10::Storage& storage);
  void set_storage(ParameterGroupId group, const c10::Storage& storage);
  void forget(ParameterGroupId group);
  void appear(const c10::Storage& storage, GroupsOfStep& made);
  void see_gradient(const at::Tensor& parameter, GroupsOfStep& gradients);
  void give_values_back();
  void add_uses(const c10::IValue& argument, bool changes, std::vector<ParameterGroupUse>& uses) const;
  std::vector<ParameterGroupUse> uses_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) const;

  Device& device_;
  std::unique_ptr<ParameterStore> store_;
  Bytes least_bytes_;
  ParameterScheduler scheduler_;
  /// Threads of a backward take turns; those of a module that forks do not.
  mutable std::mutex mutex_;
  std::vector<Group> groups_;
  std::unordered_map<const c10::StorageImpl*, ParameterGroupId> group_of_;
  std::vector<at::Tensor> parameters_;  ///< parameters with a gradient hook
  /// Gradients, by index in parameters_. A vector, because each step must forget them in the same order.
  std::vector<GroupsOfStep> gradients_of_;
  GroupsOfStep values_;  ///< adopted for the step
  StepListener* listener_ = nullptr;
  ParameterTraffic traffic_;
};

}  // namespace offprof

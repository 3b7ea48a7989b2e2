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

#include "engine/device.h"
#include "engine/weights/page_scheduler.h"
#include "engine/weights/weight_store.h"
#include "traces/units.h"

namespace c10 {
class OperatorHandle;
}

namespace offprof {

class StepListener;

/// Bytes that went over the device's link, and to the disk beside it.
struct WeightTraffic {
  Bytes d2h = 0, h2d = 0;
  Bytes disk_write = 0, disk_read = 0;
};

/// Keeps weights, their gradients and the optimizer's state off the device but while operators use them, and
/// what waits between the shards of a model.
///
/// It works on storages: what is away has no memory, but its tensors, all views of it and what autograd saved
/// of it stay as they are, and have it again when an operator asks. While a Scope lives, LibTorch's
/// dispatcher asks the pager before each operator that is given such a tensor; operators see nothing of it,
/// so gradients are those without it, to the bit. Tensors that a module keeps outside its parameters and
/// buffers are not known to it and stay.
///
/// Where the device has no memory for what an operator needs, the operator throws c10::OutOfMemoryError.
class WeightPager final : private PageExecutor {
 public:
  /// Smaller storages stay on the device: to copy them costs more than they take.
  static constexpr Bytes kLeastBytes = 4 * kKiB;

  /// `device` must outlive it. `window_bytes`: see PageScheduler. `least_bytes`: of a storage that leaves the
  /// device.
  WeightPager(Device& device, std::unique_ptr<WeightStore> store, Bytes window_bytes,
              Bytes least_bytes = kLeastBytes);
  ~WeightPager() override;
  WeightPager(const WeightPager&) = delete;
  WeightPager& operator=(const WeightPager&) = delete;

  /// While it lives, operators of this thread, and of backwards that it begins, ask this pager.
  class Scope {
   public:
    explicit Scope(WeightPager* pager);  ///< nullptr: nobody is asked
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::optional<c10::impl::IncludeDispatchKeyGuard> key_;
  };

  /// Of the Scope that lives; nullptr: there is none, or nobody is asked in it.
  static WeightPager* current();

  /// The tensor's storage leaves the device, to be there only when it is used. Nothing happens to one that is
  /// small, or known already.
  void adopt(const at::Tensor& value);
  /// Adopts a parameter, and from here on each gradient that backward makes of it.
  void adopt_parameter(const at::Tensor& parameter);
  /// Adopts what the step has made, and somebody will use later in it. Nothing happens to what is older than
  /// the allocation `made_since`: its owner has it beyond the step.
  void adopt_for_step(const at::Tensor& value, AllocationId made_since);
  /// Of the device.
  AllocationId next_allocation() const { return device_.next_allocation(); }
  /// The parameters' gradients are set to none next: none is on its way to the device any more.
  void forget_gradients();

  /// Between steps nothing lies on the device. What was adopted for the step and is still held, as by an
  /// attribute of a module, is the holder's again, and there.
  void end_step();
  /// The step that ended last is what those to come are like.
  void learn();
  /// Until the next end_step all is on the device, as it is without a pager.
  void bring_all();

  /// Is told of copies that go over the link, each between on_hook_begin and on_hook_end; nullptr: nobody.
  void set_listener(StepListener* listener) { listener_ = listener; }
  /// Since the last call.
  WeightTraffic take_traffic() { return std::exchange(traffic_, {}); }

  bool is_page(const c10::Storage& storage) const;
  Bytes window_bytes() const { return scheduler_.window_bytes(); }
  void set_window_bytes(Bytes bytes) { scheduler_.set_window_bytes(bytes); }
  Bytes most_used_bytes() const { return scheduler_.most_used_bytes(); }
  /// Of the device's host memory, at most.
  Bytes host_bytes() const {
    return store_->host_bytes(std::max(scheduler_.window_bytes(), scheduler_.most_used_bytes()));
  }

  /// What the dispatcher calls.
  static void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

 private:
  struct Page {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::optional<WeightStore::Slot> slot{};  ///< none: it was never away
    /// Held while its bytes are on their way into it.
    c10::intrusive_ptr<c10::StorageImpl> coming{};
  };
  /// Of what each step makes anew: the gradients of one parameter, or values.
  struct PagesOfStep {
    std::vector<PageId> pages;  ///< in the order in which a step makes them
    std::size_t in_step = 0;    ///< how many it has made so far
  };
  class GradientHook;
  class Use;

  void fetch(PageId page) override;
  void wait(PageId page) override;
  void evict(PageId page, bool changed) override;
  bool is_held(PageId page) const override { return pages_[page].storage.use_count() > 0; }
  void save(PageId page, const c10::Storage& storage);
  void forget_failures() noexcept;

  template <typename Copy, typename Tell>
  void copy(const c10::Storage& storage, const Copy& copy, const Tell& tell);
  PageId add_page(const c10::Storage& storage);
  void set_storage(PageId page, const c10::Storage& storage);
  void forget(PageId page);
  void appear(const c10::Storage& storage, PagesOfStep& made);
  void see_gradient(const at::Tensor& parameter, PagesOfStep& gradients);
  void give_values_back();
  void add_uses(const c10::IValue& argument, bool changes, std::vector<PageUse>& uses) const;
  std::vector<PageUse> uses_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) const;

  Device& device_;
  std::unique_ptr<WeightStore> store_;
  Bytes least_bytes_;
  PageScheduler scheduler_;
  mutable std::mutex
      mutex_;  ///< threads of a backward follow each other; those of a module that forks do not
  std::vector<Page> pages_;
  std::unordered_map<const c10::StorageImpl*, PageId> page_of_;
  std::vector<at::Tensor> parameters_;  ///< whose gradients are seen
  /// Of each, in this order: a step is to let go of them in the same order every time.
  std::vector<PagesOfStep> gradients_of_;
  PagesOfStep values_;  ///< that were adopted for the step
  StepListener* listener_ = nullptr;
  WeightTraffic traffic_;
};

}  // namespace offprof

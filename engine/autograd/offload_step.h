#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/autograd/residents.h"
#include "engine/autograd/saved_contents.h"
#include "engine/autograd/step_executor.h"
#include "engine/autograd/step_guide.h"
#include "engine/autograd/step_listener.h"
#include "engine/devices/device.h"
#include "engine/scheduler/scheduler.h"
#include "traces/model/ledger.h"
#include "traces/model/policy.h"

namespace torch::autograd {
struct Node;
}

namespace offprof {

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

/// One training step under a policy. Autograd saves a tensor by `pack`, gets it back by
/// `unpack` and frees it by `release`. The scheduler decides; StepExecutor executes on a device. A graph that
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
/// A tensor that an autograd node saves (Movability::kUnpacked) stays on the device if backward has already
/// unpacked a tensor of its storage.
///
/// Several threads may call at once, as those of a module that forks do. They take turns, in an order that
/// the next step need not repeat. PassRecorder rejects such a step.
class OffloadStep final {
 public:
  /// `device` must outlive every saved tensor of the step. So must `listener` (may be null), unless
  /// stop_listening is called.
  OffloadStep(Device& device, const Policy& policy, StepGuide guide,
              std::shared_ptr<const Residents> residents, StepListener* listener);
  OffloadStep(const OffloadStep&) = delete;
  OffloadStep& operator=(const OffloadStep&) = delete;

  SavedId pack(const at::Tensor& value) { return pack(value, value); }
  /// `saved` is the tensor by which parameters are known: `value` itself, or the inner one of a wrapped
  /// tensor.
  SavedId pack(const at::Tensor& value, const at::Tensor& saved);
  at::Tensor unpack(SavedId tensor);
  /// Throws nothing: the next call of another function reports a failure.
  void release(SavedId tensor) noexcept;
  /// Announces that an operator is about to draw random numbers: see RandomDraws. Needed only if
  /// watches_draws returns true.
  void draw(const std::string& op);
  bool watches_draws() const { return executor_.recompute().watches_draws(); }
  /// See SavedContents. In backward, which calls a module again (re-entrant checkpointing), nothing is an
  /// input.
  void add_inputs(std::span<const at::Tensor> tensors);
  void add_outputs(std::span<const at::Tensor> tensors);
  /// Announces that the running autograd node has ended.
  void node_end();
  /// Announces that backward is done; called by the caller of backward.
  void backward_end();
  /// Stops all notifications of the listener.
  void stop_listening();

  /// Returns true if a call has thrown. All later calls throw the same exception.
  bool has_failed() const { return failure_ != nullptr; }
  /// Returns the number of reloads that the device had no memory for, and that were delayed or that other
  /// memory was freed for.
  int refused_reloads() const { return executor_.refused_reloads(); }
  Bytes host_peak_bytes() const { return executor_.copies().host_peak_bytes(); }
  Bytes d2h_bytes() const { return executor_.copies().d2h_bytes(); }
  Bytes h2d_bytes() const { return executor_.copies().h2d_bytes(); }
  const StepDiskCopies& disk() const { return executor_.copies().disk(); }
  const Ledger& ledger() const { return ledger_; }
  /// Returns what the engine and its listener have asked the device for, of all that it was asked for.
  DeviceCounts engine_counts() const { return engine_counts_; }
  const std::vector<Command>& commands() const { return executor_.commands(); }

 private:
  class HookScope;
  class NodeEndHook;

  template <typename Call>
  auto scheduled(Call call);
  PackRequest asked_of(PackRequest request, const at::Tensor& value) const;
  RuledPlacement rule_for(SavedId tensor, const at::Tensor& value, const PackRequest& request) const;
  void add_to_ledger(const PackDecision& decision, Bytes bytes);
  void ask_scheduler_for(SavedId tensor, const Shell& shell);
  void watch_node_end();

  std::exception_ptr failure_;  ///< the scheduler's first failure
  /// Recursive: releasing an object inside a call may call back.
  std::recursive_mutex mutex_;
  Device& device_;
  const StepGuide guide_;
  StepExecutor executor_;
  SavedContents contents_;
  std::atomic<StepListener*> listener_;
  std::unique_ptr<Scheduler> scheduler_;
  bool wants_node_ends_;
  const torch::autograd::Node* watched_node_ = nullptr;
  std::vector<SavedId> node_tensors_;  ///< unpacked by it
  std::vector<SavedId> node_escaped_;
  Ledger ledger_;
  int open_hooks_ = 0;  ///< a hook may release an object whose release is a hook
  DeviceCounts engine_counts_;
};

}  // namespace offprof

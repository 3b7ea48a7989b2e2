#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "engine/devices/cuda/host_work/host_work.h"
#include "engine/devices/cuda/known_values.h"
#include "engine/devices/cuda/step_size_counter.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// Returns the operator with the shapes of its inputs.
OpCall describe_call(const at::RecordFunction& op);

/// Returns true if the host reads the operator's result from the device, or if the operator copies from the
/// device, unless the thread moves data. The engine's own copies are no operators.
bool reads_back(const at::RecordFunction& op);

/// From now on, what this thread copies to the host is moved there, to be used on the device later or by an
/// optimizer on the CPU, and not read; or no more. Calls nest.
void note_moves(bool are_moves);

/// Returns true if values on the device decide the shape of the operator's result, as for `aten::nonzero`.
bool has_shape_by_values(const at::RecordFunction& op);

/// Operator in progress, as reported to the virtual GPU.
class ObservedOp final : public at::ObserverContext {
 public:
  /// `op` begins. `values`: nullptr: none are known. `is_of_python`: see OpCall.
  ObservedOp(const at::RecordFunction& op, const GpuOperators& gpu, KnownValues* values, bool is_of_python)
      : call_(describe_call(op)),
        known_(values == nullptr ? KnownValues::Operator{} : values->begin_op(op)),
        reads_back_(reads_back(op) && !known_.knows_operands),
        unknown_reads_before_(reads_back_ ? gpu.unknown_reads() : 0) {
    call_.is_of_python = is_of_python;
    call_.is_computed_again = StepSizeCounter::is_computing_again();
  }

  const OpCall& call() const { return call_; }
  const KnownValues::Operator& known() const { return known_; }
  /// Returns true if values on the device that are not known decide the shape of its result.
  bool has_unknown_shape(const at::RecordFunction& op) const {
    return !known_.knows_operands && has_shape_by_values(op);
  }
  /// Returns true if it has read values back that the virtual GPU does not know.
  bool has_read_unknown_values(const GpuOperators& gpu) const {
    return reads_back_ && gpu.unknown_reads() > unknown_reads_before_;
  }

 private:
  OpCall call_;
  KnownValues::Operator known_;
  bool reads_back_;
  std::int64_t unknown_reads_before_;
};

/// Reports the current operator and the shapes of its inputs to the virtual GPU, which assigns kernels to it,
/// and records the operators that depend on values of the device. Observes, during its lifetime, the thread
/// that created it and the threads on which autograd runs its backward. Only one may exist in the process.
class OpObserver {
 public:
  explicit OpObserver(VirtualGpu& gpu);
  ~OpObserver();
  OpObserver(const OpObserver&) = delete;
  OpObserver& operator=(const OpObserver&) = delete;

  /// Returns the names of the operators that read values back which the virtual GPU does not know, since the
  /// last call.
  std::set<std::string> take_value_reads();
  /// Returns the names of the operators whose result shape depends on values, since the last call.
  std::set<std::string> take_shapes_by_values();
  /// Returns what is known of the program's tensors; nullptr: nothing is, since a TorchScript module's inputs
  /// are random.
  KnownValues* values() { return values_ ? &*values_ : nullptr; }
  /// See StepSizeCounter.
  std::int64_t take_tokens() { return size_.take_tokens(); }

 private:
  static std::unique_ptr<at::ObserverContext> begins(const at::RecordFunction& op);
  static void ends(const at::RecordFunction& op, at::ObserverContext* context);
  static std::unique_ptr<at::ObserverContext> node_begins(const at::RecordFunction& node);
  static void node_ends(const at::RecordFunction& node, at::ObserverContext* context);
  void note(std::string_view op, std::set<std::string>& names);

  GpuOperators& gpu_;
  std::optional<KnownValues> values_;
  std::optional<HostWorkTeller> host_work_;  ///< nullopt: the program is no Python program
  at::CallbackHandle callback_;
  at::CallbackHandle node_callback_;
  StepSizeCounter size_;
  std::mutex mutex_;  ///< operators may run on several threads at once
  std::set<std::string> value_reads_, shapes_by_values_;
};

}  // namespace offprof

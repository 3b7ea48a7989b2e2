#pragma once

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// True if values decide the shape of the operator's result, as for `aten::nonzero`.
bool shapes_by_values(std::string_view op);

/// Returns the operator with the shapes of its inputs.
OpCall describe_call(const at::RecordFunction& op);

/// True if the host reads the operator's result or its shape from the device, or if the operator copies from
/// the device. The engine's own copies are no operators.
bool reads_back(const at::RecordFunction& op);

/// Reports the current operator and the shapes of its inputs to the virtual GPU, which assigns kernels to it,
/// and records the operators that read values back from the device. Observes, during its lifetime, the thread
/// that created it and the threads on which autograd runs its backward. Only one may exist in the process.
class OpObserver {
 public:
  explicit OpObserver(VirtualGpu& gpu);
  ~OpObserver();
  OpObserver(const OpObserver&) = delete;
  OpObserver& operator=(const OpObserver&) = delete;

  /// Returns the names of these operators since the last call.
  std::set<std::string> take_value_reads();

 private:
  static std::unique_ptr<at::ObserverContext> begins(const at::RecordFunction& op);
  static void ends(const at::RecordFunction& op, at::ObserverContext* context);
  void note_value_read(const at::RecordFunction& op);

  VirtualGpu& gpu_;
  at::CallbackHandle callback_;
  std::mutex mutex_;  ///< operators may run on several threads at once
  std::set<std::string> value_reads_;
};

}  // namespace offprof

#pragma once

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "simulator/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// Whether the operator's result has a shape that values decide: `aten::nonzero`.
bool shapes_by_values(std::string_view op);

/// Tells the virtual GPU which operator the kernels belong to, with the shapes it was called with, and counts
/// operators that read values back from the device. Observes the thread that made it and those that autograd
/// runs backward on, as long as it lives. One at a time in the process.
class OpObserver {
 public:
  explicit OpObserver(VirtualGpu& gpu);
  ~OpObserver();
  OpObserver(const OpObserver&) = delete;
  OpObserver& operator=(const OpObserver&) = delete;

  /// By operator, since the last call.
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

#pragma once

#include <ATen/record_function.h>

#include "engine/devices/cuda/host_work/host_work.h"

namespace offprof {

/// Operators that make lists of views, such as `aten::chunk`, by calls of a few operators for each view. A
/// rank of 1024 makes millions of them when FSDP shards its parameters, and to observe an operator takes
/// longer than to make a view. So the first call on a thread is observed, which tells how many operators it
/// takes for each view; those within later calls are hidden from all observers, and counted.
///
/// Hides nothing where others could miss it: for tensors that wrap others, under modes of Python, and while
/// somebody else observes the thread, such as PyTorch's profiler.
class ViewLists {
 public:
  /// An operator begins on this thread, and HostWorkTeller was told. Each one has to end.
  static void begin_op(const at::RecordFunction& op);
  /// It ends; `op` has its outputs. Returns the operators within it that were hidden.
  static ToldOperators end_op(const at::RecordFunction& op);
};

}  // namespace offprof

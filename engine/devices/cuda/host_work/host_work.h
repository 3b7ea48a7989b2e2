#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <thread>

#include "engine/devices/cuda/host_work/python_calls.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// Returns true if a Python program runs in this process, rather than a TorchScript module.
bool is_python_process();

/// Returns true for a tensor in the memory of that kind of device.
bool is_tensor_on(c10::DeviceType type, const c10::IValue& value);

/// Numbers of operators, and of those among them that autograd records.
struct ToldOperators {
  std::int64_t operators = 0, recordings = 0;
};

/// Tells a virtual GPU what the host does for the operators of a Python program, for nodes of autograd, and
/// in Python functions between them.
///
/// Counts what the thread that created it runs, and what runs within backward. Other threads, such as those
/// that load data, work beside the program.
class HostWorkTeller {
 public:
  explicit HostWorkTeller(GpuOperators& gpu)
      : gpu_(gpu), python_calls_(gpu), program_(std::this_thread::get_id()) {}

  void begin_op(const at::RecordFunction& op);
  void end_op();
  /// Returns how many operators have been told on this thread, if it counts.
  static ToldOperators told();
  /// Tells of operators that the current one has called and that were not observed.
  void add(const ToldOperators& operators);
  void begin_node();
  void end_node();

 private:
  bool counts_this_thread() const;
  void spend(const ToldOperators& operators);

  GpuOperators& gpu_;
  PythonCalls python_calls_;
  std::thread::id program_;
};

}  // namespace offprof

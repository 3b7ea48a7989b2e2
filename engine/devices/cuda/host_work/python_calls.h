#pragma once

#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// Tells a virtual GPU, during its lifetime, the calls of Python functions in modules, in steps of optimizers
/// and in backward. Such calls follow from the program alone; those elsewhere, such as of progress bars, may
/// depend on the time. What offprof's own functions call is left out, but for the modules among it.
///
/// Uses CPython's function for frames (PEP 523), as TorchDynamo does: both may be there. With a CPython that
/// has not got that function, nothing is told. Only one may exist in the process.
class PythonCalls {
 public:
  /// The calling thread is the program's. Others, such as those that load data, work beside it.
  explicit PythonCalls(GpuOperators& gpu);
  ~PythonCalls();
  PythonCalls(const PythonCalls&) = delete;
  PythonCalls& operator=(const PythonCalls&) = delete;

  /// A node of backward begins and ends on the calling thread.
  static void begin_node();
  static void end_node();
};

}  // namespace offprof

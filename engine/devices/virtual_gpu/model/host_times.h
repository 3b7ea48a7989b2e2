#pragma once

#include "traces/base/units.h"

namespace offprof {

/// Work of the host for the operators of a Python program.
enum class HostWork {
  kOperator,        ///< PyTorch's dispatcher finds the operator and runs it; those that it calls are others
  kPythonCall,      ///< the program gets to the operator and calls it
  kPythonFunction,  ///< Python runs a function of the program or of its libraries, outside of operators
  kRecording,       ///< autograd makes the operator's node for backward
  kNode,            ///< autograd runs a node in backward
  kLaunch,          ///< the operator takes memory and prepares a launch, beside DeviceProfile::launch_ns
  kRandomNumber     ///< PyTorch's generator of the CPU draws a number for a tensor in host memory
};

/// Time of each HostWork.
struct HostTimes {
  Nanoseconds operator_ns = 0;
  Nanoseconds python_call_ns = 0;
  Nanoseconds python_function_ns = 0;
  Nanoseconds recording_ns = 0;
  Nanoseconds node_ns = 0;
  Nanoseconds launch_ns = 0;
  Nanoseconds random_number_ns = 0;

  Nanoseconds of(HostWork work) const {
    switch (work) {
      case HostWork::kOperator:
        return operator_ns;
      case HostWork::kPythonCall:
        return python_call_ns;
      case HostWork::kPythonFunction:
        return python_function_ns;
      case HostWork::kRecording:
        return recording_ns;
      case HostWork::kNode:
        return node_ns;
      case HostWork::kLaunch:
        return launch_ns;
      case HostWork::kRandomNumber:
        return random_number_ns;
    }
    return 0;
  }
};

}  // namespace offprof

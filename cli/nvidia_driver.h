#pragma once

#include <string>

namespace offprof {

/// What the NVIDIA driver answers when it is asked for its devices.
struct DriverAnswer {
  int gpus = 0;
  std::string problem;  ///< why there are none; empty where there are
};

/// Asks in a child process, so that a driver that goes wrong leaves this one alone, and this one has no CUDA
/// context after it.
DriverAnswer ask_nvidia_driver();

}  // namespace offprof

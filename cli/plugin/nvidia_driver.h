#pragma once

#include <string>

namespace offprof {

/// Answer of the NVIDIA driver to a query for its devices.
struct DriverAnswer {
  int gpus = 0;
  std::string problem;  ///< the reason why there is no GPU; empty if there is one
};

/// Queries the driver in a child process, so that a faulty driver cannot damage this process, and so that
/// this process has no CUDA context afterwards.
DriverAnswer ask_nvidia_driver();

}  // namespace offprof

#pragma once

#include <optional>

#include "traces/error.h"

namespace offprof {

/// Why the NVIDIA driver has no GPU for this process, with what helps: it is not there, it is older than CUDA
/// 13, which CUPTI needs, it does not start, or it counts none. nullopt: none of these. Starts the driver, as
/// CUDA's first call does.
std::optional<Error> driver_refusal();

/// What driver_refusal asks, for tests. A function that is nullptr is one that there is none of.
struct DriverFunctions {
  bool is_there = false;
  int (*start)(unsigned flags) = nullptr;      ///< cuInit
  int (*version)(int* version) = nullptr;      ///< cuDriverGetVersion
  int (*count_devices)(int* count) = nullptr;  ///< cuDeviceGetCount
};
std::optional<Error> driver_refusal(const DriverFunctions& driver);

}  // namespace offprof

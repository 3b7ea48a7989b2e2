#pragma once

#include <optional>

#include "traces/base/error.h"

namespace offprof {

/// Returns an error with a hint if the NVIDIA driver has no GPU for this process: the driver is missing, is
/// older than CUDA 13, which CUPTI needs, does not start, or finds no GPU. Returns nullopt otherwise. Starts
/// the driver, as the first CUDA call does.
std::optional<Error> driver_refusal();

/// Returns the same error if the driver is missing, and does not start the driver.
std::optional<Error> missing_driver();

/// Functions that driver_refusal calls, for tests. nullptr: the driver lacks that function.
struct DriverFunctions {
  bool is_there = false;
  int (*start)(unsigned flags) = nullptr;      ///< cuInit
  int (*version)(int* version) = nullptr;      ///< cuDriverGetVersion
  int (*count_devices)(int* count) = nullptr;  ///< cuDeviceGetCount
};
std::optional<Error> driver_refusal(const DriverFunctions& driver);

}  // namespace offprof

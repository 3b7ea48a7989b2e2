#pragma once

namespace offprof {

/// Result of a CUDA API call.
enum class GpuStatus {
  kOk,
  kNotReady,
  kOutOfMemory,
  kInvalidValue,
  kInvalidHandle,  ///< unknown stream or event
  kHostRangePinned,
  kHostRangeNotPinned,
  kNoCode,  ///< the kernel's module holds no code for this GPU
};

}  // namespace offprof

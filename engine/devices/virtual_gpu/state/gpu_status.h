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
  kPeerProblem,  ///< another rank has not come, or calls something else: see GpuCollectives::take_problem
  kNoCode,       ///< the kernel's module holds no code for this GPU
};

}  // namespace offprof

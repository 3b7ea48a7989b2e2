#pragma once

namespace offprof::runtime {

/// Version of one of NVIDIA's libraries. The build takes it from cmake/torch_versions.txt.
struct LibraryVersion {
  int major, minor, patch;

  /// Returns the number that cuBLAS, cuBLASLt and cuDNN report (cublas_api.h, cudnn_version.h).
  constexpr int number() const { return major * 10000 + minor * 100 + patch; }
};

}  // namespace offprof::runtime

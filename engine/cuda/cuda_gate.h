#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>

#include "engine/tier_disk.h"

namespace offprof {

/// A gate that is a word of pinned memory, for which streams wait by cuStreamWaitValue32: the GPU itself
/// looks at it, and no thread of CUDA's waits. The driver's functions are found by
/// cudaGetDriverEntryPointByVersion, so nothing links the driver.
class CudaGate final : public QueueGate {
 public:
  /// nullptr: this driver or GPU cannot do it. `copies`: the streams, by CopyQueue.
  static std::unique_ptr<CudaGate> make(const std::array<cudaStream_t, 2>& copies);
  /// No stream may be waiting.
  ~CudaGate() override;
  CudaGate(const CudaGate&) = delete;
  CudaGate& operator=(const CudaGate&) = delete;

  void open(std::uint32_t count) override;
  void hold(CopyQueue queue, std::uint32_t count) override;

 private:
  using WaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned flags);

  CudaGate(const std::array<cudaStream_t, 2>& copies, WaitValue wait, std::uint32_t* word,
           CUdeviceptr address)
      : copies_(copies), wait_(wait), word_(word), address_(address) {}
  CUresult wait_for(cudaStream_t stream, std::uint32_t count);

  std::array<cudaStream_t, 2> copies_;
  WaitValue wait_;
  std::uint32_t* word_;  ///< pinned
  CUdeviceptr address_;  ///< of it, to the GPU
};

}  // namespace offprof

#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>

#include "engine/devices/disk/tiered_device_disk.h"

namespace offprof {

/// Gate in a word of pinned memory, on which streams wait with cuStreamWaitValue32. The GPU itself polls the
/// word, so no CUDA thread waits. The driver's functions are found by cudaGetDriverEntryPointByVersion, so
/// nothing links the driver.
class CudaGate final : public QueueGate {
 public:
  /// Returns nullptr if this driver or GPU does not support it. `copies`: the streams, by CopyQueue.
  static std::unique_ptr<CudaGate> make(const std::array<cudaStream_t, 2>& copies);
  /// Requires that no stream is waiting.
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
  CUdeviceptr address_;  ///< GPU address of word_
};

}  // namespace offprof

#include "engine/devices/cuda/cuda_gate.h"

#include <atomic>
#include <string>

#include "traces/base/error.h"

namespace offprof {
namespace {

/// Version of the driver's interface, the first whose cuStreamWaitValue32 needs no permission in the driver's
/// settings (CUDA 11.7).
constexpr unsigned kDriverVersion = 11070;

void* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion(name, &function, kDriverVersion, cudaEnableDefault, &result) !=
      cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  return result == cudaDriverEntryPointSuccess ? function : nullptr;
}

}  // namespace

std::unique_ptr<CudaGate> CudaGate::make(const std::array<cudaStream_t, 2>& copies) {
  const auto wait = reinterpret_cast<WaitValue>(driver_function("cuStreamWaitValue32"));
  void* word = nullptr;
  void* address = nullptr;
  if (wait == nullptr) return nullptr;
  if (cudaHostAlloc(&word, sizeof(std::uint32_t), cudaHostAllocMapped) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  auto* const count = static_cast<std::uint32_t*>(word);
  *count = 0;
  if (cudaHostGetDevicePointer(&address, word, 0) != cudaSuccess) {
    cudaGetLastError();
    cudaFreeHost(word);
    return nullptr;
  }
  std::unique_ptr<CudaGate> gate(new CudaGate(copies, wait, count, reinterpret_cast<CUdeviceptr>(address)));
  // Test with the current value of the word: a GPU that supports the wait passes at once.
  if (gate->wait_for(copies[0], 0) != CUDA_SUCCESS) return nullptr;
  return gate;
}

CudaGate::~CudaGate() {
  cudaFreeHost(word_);
}

/// Opens the gate up to `count`. Bytes that a disk has read are visible before the count is.
void CudaGate::open(std::uint32_t count) {
  std::atomic_ref(*word_).store(count, std::memory_order_release);
}

void CudaGate::hold(CopyQueue queue, std::uint32_t count) {
  const CUresult result = wait_for(copies_[static_cast<std::size_t>(queue)], count);
  if (result == CUDA_SUCCESS) return;
  throw environment_error("CUDA cannot make a stream wait for the disk: error " + std::to_string(result) +
                              " from cuStreamWaitValue32",
                          "run `offprof doctor` to see what the GPU's driver reports");
}

CUresult CudaGate::wait_for(cudaStream_t stream, std::uint32_t count) {
  return wait_(stream, address_, count, CU_STREAM_WAIT_VALUE_GEQ);
}

}  // namespace offprof

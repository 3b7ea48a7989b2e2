#include <cstring>

#include "engine/devices/virtual_gpu/runtime/cudart.h"
#include "engine/devices/virtual_gpu/runtime/traced_call.h"

using namespace offprof;
using namespace offprof::runtime;

namespace {

CopyRows one_row(void* to, const void* from, std::size_t bytes) {
  return {.to = to, .from = from, .bytes = static_cast<Bytes>(bytes)};
}

/// Returns true if the calling thread may allocate on its device: this process has allocated on no other,
/// since it has one virtual GPU.
bool claims_device() {
  if (gpu().memory().claim_device(current_device())) return true;
  gpu().unsupported_calls().note_unwritten(
      "cudaMalloc on a second device (a process has one: start a process for each, as torchrun does)");
  return false;
}

cudaMemoryType memory_type(MemoryPlace place) {
  switch (place) {
    case MemoryPlace::kDevice:
      return cudaMemoryTypeDevice;
    case MemoryPlace::kPinned:
      return cudaMemoryTypeHost;
    case MemoryPlace::kPageable:
      return cudaMemoryTypeUnregistered;
  }
  return cudaMemoryTypeUnregistered;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  OFFPROF_TRACED_CALL(cudaMalloc_v3020);
  if (!claims_device()) return noted(cudaErrorNotSupported);
  return noted(gpu().memory().allocate(address, static_cast<Bytes>(bytes)));
}

cudaError_t cudaFree(void* address) {
  OFFPROF_TRACED_CALL(cudaFree_v3020);
  return noted(gpu().memory().free(address));
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  OFFPROF_TRACED_CALL(cudaHostAlloc_v3020);
  return noted(gpu().memory().allocate_pinned(address, static_cast<Bytes>(bytes)));
}

cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  OFFPROF_TRACED_CALL(cudaMallocHost_v3020);
  return cudaHostAlloc(address, bytes, 0);
}

cudaError_t cudaFreeHost(void* address) {
  OFFPROF_TRACED_CALL(cudaFreeHost_v3020);
  return noted(gpu().memory().free_pinned(address));
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned) {
  OFFPROF_TRACED_CALL(cudaHostRegister_v4000);
  return noted(gpu().memory().pin(address, static_cast<Bytes>(bytes)));
}

cudaError_t cudaHostUnregister(void* address) {
  OFFPROF_TRACED_CALL(cudaHostUnregister_v4000);
  return noted(gpu().memory().unpin(address));
}

cudaError_t cudaHostGetDevicePointer(void** device_address, void* address, unsigned) {
  if (gpu().memory().describe(address).place != MemoryPlace::kPinned) return noted(cudaErrorInvalidValue);
  *device_address = address;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  OFFPROF_TRACED_CALL(cudaPointerGetAttributes_v4000);
  const MemoryPlace place = gpu().memory().describe(address).place;
  std::memset(attributes, 0, sizeof *attributes);
  attributes->type = memory_type(place);
  attributes->device = place == MemoryPlace::kPageable ? cudaInvalidDeviceId : gpu().device();
  if (place != MemoryPlace::kPageable) attributes->devicePointer = const_cast<void*>(address);
  if (place != MemoryPlace::kDevice) attributes->hostPointer = const_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  OFFPROF_TRACED_CALL(cudaMemcpy_v3020);
  return noted(gpu().copies().copy(nullptr, one_row(to, from, bytes), HostWaits::kUntilDone));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaMemcpyAsync_v3020);
  return noted(gpu().copies().copy(stream_of(stream), one_row(to, from, bytes), HostWaits::kNever));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaMemcpyPeerAsync_v4000);
  return noted(gpu().copies().copy(stream_of(stream), one_row(to, from, bytes), HostWaits::kNever));
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind, cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaMemcpy2DAsync_v3020);
  if (width > to_pitch || width > from_pitch) return noted(cudaErrorInvalidValue);
  const CopyRows rows{.to = to,
                      .from = from,
                      .bytes = static_cast<Bytes>(width),
                      .rows = static_cast<Bytes>(height),
                      .to_pitch = static_cast<Bytes>(to_pitch),
                      .from_pitch = static_cast<Bytes>(from_pitch)};
  return noted(gpu().copies().copy(stream_of(stream), rows, HostWaits::kNever));
}

cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  OFFPROF_TRACED_CALL(cudaMemset_v3020);
  return noted(gpu().copies().set(nullptr, address, value, static_cast<Bytes>(bytes), HostWaits::kNever));
}

cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaMemsetAsync_v3020);
  return noted(
      gpu().copies().set(stream_of(stream), address, value, static_cast<Bytes>(bytes), HostWaits::kNever));
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  OFFPROF_TRACED_CALL(cudaGetSymbolAddress_v3020);
  void* found = gpu().memory().variable_address(symbol);
  if (found == nullptr) return noted(cudaErrorInvalidSymbol);
  *address = found;
  return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                               cudaMemcpyKind kind) {
  OFFPROF_TRACED_CALL(cudaMemcpyToSymbol_v3020);
  void* address = nullptr;
  const cudaError_t error = cudaGetSymbolAddress(&address, symbol);
  if (error != cudaSuccess) return error;
  return cudaMemcpy(static_cast<char*>(address) + offset, from, bytes, kind);
}

// Neither the stream-ordered allocator nor memory shared between processes is simulated. Reporting success
// would make the results wrong.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaMallocAsync(void**, std::size_t, cudaStream_t) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaFreeAsync(void*, cudaStream_t) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaIpcCloseMemHandle(void*) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) {
  return noted(cudaErrorNotSupported);
}

}  // extern "C"

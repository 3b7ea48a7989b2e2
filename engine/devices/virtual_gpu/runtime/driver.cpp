#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/devices/virtual_gpu/runtime/device_properties.h"
#include "engine/devices/virtual_gpu/runtime/traced_call.h"

// The driver, above all the virtual memory behind PyTorch's expandable segments. LibTorch gets these
// functions by cudaGetDriverEntryPointByVersion, never by linking.

using namespace offprof;
using namespace offprof::runtime;

namespace {

CUresult result_of(GpuStatus status) {
  switch (status) {
    case GpuStatus::kOk:
      return CUDA_SUCCESS;
    case GpuStatus::kNotReady:
      return CUDA_ERROR_NOT_READY;
    case GpuStatus::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case GpuStatus::kInvalidHandle:
      return CUDA_ERROR_INVALID_HANDLE;
    case GpuStatus::kInvalidValue:
      return CUDA_ERROR_INVALID_VALUE;
    case GpuStatus::kHostRangePinned:
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    case GpuStatus::kHostRangeNotPinned:
      return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    case GpuStatus::kNoCode:
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case GpuStatus::kPeerProblem:
      return CUDA_ERROR_OPERATING_SYSTEM;
  }
  return CUDA_ERROR_UNKNOWN;
}

void* address_of(CUdeviceptr pointer) {
  return reinterpret_cast<void*>(pointer);
}

Bytes bytes_of(std::size_t bytes) {
  return static_cast<Bytes>(bytes);
}

// Returns the only context of the process. Nobody reads its contents.
CUcontext the_context() {
  static char context;
  return reinterpret_cast<CUcontext>(&context);
}

/// Returns a limit of the context; nullptr if it has no such limit. The initial values are the defaults that
/// cudaDeviceGetLimit documents, and for the printf buffer the one that drivers report.
std::atomic<std::size_t>* context_limit(CUlimit limit) {
  static std::atomic<std::size_t> stack = 1024, printf_buffer = 1U << 20U, malloc_heap = 8U << 20U;
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return &stack;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return &printf_buffer;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return &malloc_heap;
    default:
      return nullptr;
  }
}

const char* error_text(CUresult error) {
  switch (error) {
    case CUDA_SUCCESS:
      return "no error";
    case CUDA_ERROR_INVALID_VALUE:
      return "invalid argument";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "out of memory";
    case CUDA_ERROR_INVALID_HANDLE:
      return "invalid resource handle";
    case CUDA_ERROR_NOT_READY:
      return "device not ready";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "operation not supported";
    case CUDA_ERROR_UNSUPPORTED_LIMIT:
      return "limit is not supported on this architecture";
    case CUDA_ERROR_FILE_NOT_FOUND:
      return "file not found";
    default:
      return "unknown error";
  }
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) {
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error_text(error);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = gpu().devices();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= gpu().devices()) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

// The runtime has the same attributes except those of virtual memory, which is supported; sharing it between
// processes or devices is not.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
               ? 1
               : device_attribute(gpu().profile(), static_cast<cudaDeviceAttr>(attribute));
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = 1;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = the_context();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = the_context();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext) {
  return CUDA_SUCCESS;
}

// Kernels do not run, so nothing uses the memory that the limits are about.
CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  std::atomic<std::size_t>* const stored = context_limit(limit);
  if (stored == nullptr) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = *stored;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
  std::atomic<std::size_t>* const stored = context_limit(limit);
  if (stored == nullptr) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *stored = value;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *granularity = static_cast<std::size_t>(AddressSpace::kGranule);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
  void* address = nullptr;
  const GpuStatus status = gpu().memory().reserve_addresses(&address, bytes_of(bytes));
  if (status == GpuStatus::kOk) *pointer = reinterpret_cast<CUdeviceptr>(address);
  return result_of(status);
}

CUresult cuMemAddressFree(CUdeviceptr pointer, std::size_t bytes) {
  return result_of(gpu().memory().release_addresses(address_of(pointer), bytes_of(bytes)));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long) {
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!gpu().memory().claim_device(properties->location.id)) return CUDA_ERROR_NOT_SUPPORTED;
  AddressSpace::Handle created = 0;
  const GpuStatus status = gpu().memory().create(&created, bytes_of(bytes));
  if (status == GpuStatus::kOk) *handle = created;
  return result_of(status);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return result_of(gpu().memory().release(handle));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  AddressSpace::Handle retained = 0;
  const GpuStatus status = gpu().memory().retain(&retained, address);
  if (status == GpuStatus::kOk) *handle = retained;
  return result_of(status);
}

CUresult cuMemMap(CUdeviceptr pointer, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  if (offset != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return result_of(gpu().memory().map(address_of(pointer), bytes_of(bytes), handle));
}

CUresult cuMemUnmap(CUdeviceptr pointer, std::size_t bytes) {
  return result_of(gpu().memory().unmap(address_of(pointer), bytes_of(bytes)));
}

CUresult cuMemSetAccess(CUdeviceptr pointer, std::size_t bytes, const CUmemAccessDesc*, std::size_t) {
  return result_of(gpu().memory().set_access(address_of(pointer), bytes_of(bytes)));
}

// LibTorch looks it up by this name, which cuda.h replaces with that of a newer version.
#undef cuMemGetAddressRange
CUresult cuMemGetAddressRange(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr pointer) {
  const AddressInfo info = gpu().memory().describe(address_of(pointer));
  if (info.place != MemoryPlace::kDevice) return CUDA_ERROR_NOT_FOUND;
  if (begin != nullptr) *begin = reinterpret_cast<CUdeviceptr>(info.range.begin);
  if (bytes != nullptr) *bytes = static_cast<std::size_t>(info.range.bytes);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  const AddressInfo info = gpu().memory().describe(address_of(pointer));
  if (info.place == MemoryPlace::kPageable) return CUDA_ERROR_INVALID_VALUE;
  const CUdeviceptr begin = reinterpret_cast<CUdeviceptr>(info.range.begin);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      std::memcpy(value, &begin, sizeof begin);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      std::memcpy(value, &info.range.bytes, sizeof info.range.bytes);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:  // addresses are unified: also that of pinned memory
      std::memcpy(value, &pointer, sizeof pointer);
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// The pattern has four bytes. Only a pattern that repeats one byte can be written.
CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned value, std::size_t count, CUstream stream) {
  OFFPROF_TRACED_DRIVER_CALL(cuMemsetD32Async);
  const int byte = static_cast<int>(value & 0xffU);
  if (value != 0x01010101U * static_cast<unsigned>(byte)) return CUDA_ERROR_NOT_SUPPORTED;
  const Bytes bytes = bytes_of(count * sizeof value);
  return result_of(gpu().copies().set(stream, address_of(pointer), byte, bytes, HostWaits::kNever));
}

// Only the comparison "greater or equal" is supported.
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr word, cuuint32_t value, unsigned flags) {
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_NOT_SUPPORTED;
  return result_of(
      gpu().streams().wait_value(stream, static_cast<const std::uint32_t*>(address_of(word)), value));
}
CUresult cuStreamWriteValue32(CUstream, CUdeviceptr, cuuint32_t, unsigned) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                                      unsigned long long) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp*, CUmemGenericAllocationHandle) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // extern "C"

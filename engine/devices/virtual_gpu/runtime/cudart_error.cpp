#include "engine/devices/virtual_gpu/runtime/cudart.h"

namespace offprof::runtime {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t cuda_error(GpuStatus status) {
  switch (status) {
    case GpuStatus::kOk:
      return cudaSuccess;
    case GpuStatus::kNotReady:
      return cudaErrorNotReady;
    case GpuStatus::kOutOfMemory:
      return cudaErrorMemoryAllocation;
    case GpuStatus::kInvalidValue:
      return cudaErrorInvalidValue;
    case GpuStatus::kInvalidHandle:
      return cudaErrorInvalidResourceHandle;
    case GpuStatus::kHostRangePinned:
      return cudaErrorHostMemoryAlreadyRegistered;
    case GpuStatus::kHostRangeNotPinned:
      return cudaErrorHostMemoryNotRegistered;
    case GpuStatus::kNoCode:
      return cudaErrorNoKernelImageForDevice;
    case GpuStatus::kPeerProblem:
      return cudaErrorOperatingSystem;
  }
  return cudaErrorUnknown;
}

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

// The errors that this library returns, and those that PyTorch looks up by number.
constexpr ErrorText kErrorTexts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorOperatingSystem, "cudaErrorOperatingSystem",
     "a value of another rank was not received: the message above says why"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* text_of(cudaError_t error) {
  for (const ErrorText& text : kErrorTexts) {
    if (text.error == error) return &text;
  }
  return nullptr;
}

}  // namespace

// "Not ready" is an answer, not an error (CUDA C++ Programming Guide, "Error Checking").
cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t noted(GpuStatus status) {
  return noted(cuda_error(status));
}

}  // namespace offprof::runtime

using namespace offprof::runtime;

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  return last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* text = text_of(error);
  return text == nullptr ? "unrecognized error code" : text->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* text = text_of(error);
  return text == nullptr ? "unrecognized error code" : text->text;
}

}  // extern "C"

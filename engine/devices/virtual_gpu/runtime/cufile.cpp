#include <sys/types.h>

#include <cstddef>

// GPUDirect Storage: the GPU itself reads and writes files. The virtual GPU does not support it and returns
// an error. Python's torch links these functions. The declarations follow NVIDIA's cufile.h, which LibTorch's
// packages lack.

namespace {

// CUfileError_t: an error of cuFile, and one of the driver.
struct CuFileError {
  int error = 0, driver_error = 0;
};

constexpr int kPlatformNotSupported = 5007;  // CU_FILE_PLATFORM_NOT_SUPPORTED

}  // namespace

extern "C" {

CuFileError cuFileHandleRegister(void** handle, void*) {
  *handle = nullptr;
  return {kPlatformNotSupported, 0};
}

void cuFileHandleDeregister(void*) {}

CuFileError cuFileBufRegister(const void*, std::size_t, int) {
  return {kPlatformNotSupported, 0};
}

CuFileError cuFileBufDeregister(const void*) {
  return {kPlatformNotSupported, 0};
}

// Errors of cuFile are returned as negative numbers.
ssize_t cuFileRead(void*, void*, std::size_t, off_t, off_t) {
  return -kPlatformNotSupported;
}

ssize_t cuFileWrite(void*, const void*, std::size_t, off_t, off_t) {
  return -kPlatformNotSupported;
}

}  // extern "C"

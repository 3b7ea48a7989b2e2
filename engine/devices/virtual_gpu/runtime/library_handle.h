#pragma once

#include "engine/devices/virtual_gpu/runtime/access.h"

namespace offprof::runtime {

/// Handle of cuBLAS, cuDNN or cuFFT. It only holds the stream of its calls.
struct LibraryHandle {
  StreamId stream = nullptr;
};

}  // namespace offprof::runtime

/// Defines a library function that takes the handle first and launches kernels. The kernels count as one
/// launch under the function's name. The other arguments are ignored: by the C calling convention the caller
/// passes and removes them.
#define OFFPROF_LIBRARY_CALL(function)                                \
  int function(const offprof::runtime::LibraryHandle* handle) {       \
    offprof::runtime::launch_library_call(handle->stream, #function); \
    return 0;                                                         \
  }

/// Defines the functions of a library that create its handle, destroy it and set its stream.
#define OFFPROF_LIBRARY_HANDLE(create, destroy, set_stream)                           \
  int create(offprof::runtime::LibraryHandle** handle) {                              \
    *handle = new offprof::runtime::LibraryHandle;                                    \
    return 0;                                                                         \
  }                                                                                   \
  int destroy(offprof::runtime::LibraryHandle* handle) {                              \
    delete handle;                                                                    \
    return 0;                                                                         \
  }                                                                                   \
  int set_stream(offprof::runtime::LibraryHandle* handle, offprof::StreamId stream) { \
    handle->stream = stream;                                                          \
    return 0;                                                                         \
  }

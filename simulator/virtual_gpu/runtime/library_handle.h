#pragma once

#include "simulator/virtual_gpu/runtime/access.h"

namespace offprof::runtime {

/// What a handle of cuBLAS, cuDNN or cuFFT stands for here: the stream that its calls go to.
struct LibraryHandle {
  StreamId stream = nullptr;
};

}  // namespace offprof::runtime

/// Defines a function of a library whose first argument is its handle, and which launches kernels: they count
/// as one launch under the function's name. The other arguments are not looked at: callers pass them as the C
/// calling convention has it, and take them back themselves.
#define OFFPROF_LIBRARY_CALL(function)                                \
  int function(const offprof::runtime::LibraryHandle* handle) {       \
    offprof::runtime::launch_library_call(handle->stream, #function); \
    return 0;                                                         \
  }

/// Defines the functions of a library that make its handle, give it up and set its stream.
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

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

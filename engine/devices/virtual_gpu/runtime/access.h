#pragma once

#include "engine/devices/virtual_gpu/state/simulated_gpu.h"

// Access of the stand-in libraries to the one virtual GPU of the process, which liboffprof_virtual_gpu.so
// holds. The CUDA API has no object that could hold it.
namespace offprof::runtime {

/// Returns the virtual GPU. The first call configures the default profile, unless another was configured
/// before.
SimulatedGpu& gpu();

/// Returns the virtual GPU without configuring it, for registrations by static initialisers.
SimulatedGpu& unconfigured_gpu();

/// Launches a library call, whose own kernels count as one.
void launch_library_call(StreamId stream, const char* function);

/// Reports a call of the CUDA API to the GPU's observer, if there is one, from here to the end of the scope.
/// Of nested calls only the outermost is reported. `call` must outlive the scope.
class CallScope {
 public:
  explicit CallScope(const ApiCall& call);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  const ApiCall& call_;
  GpuObserver* observer_ = nullptr;
  Nanoseconds since_ = 0;
};

/// Records that a function was asked for a size that only the library knows and returned 0. `what` is
/// recorded once: `workspaces of cuDNN's convolutions`. Returns 0: success.
int unknown_size(const char* what);

/// Returns the number of blocks of a kernel that fit on a multiprocessor, by its limits on threads and blocks
/// alone. The registers and the shared memory of kernels are not known.
int blocks_per_multiprocessor(int block_size);

}  // namespace offprof::runtime

/// Called by each function that is not implemented: records its name, once. Returns 0, which is success in
/// every CUDA library.
extern "C" long offprof_unwritten(const char* function);

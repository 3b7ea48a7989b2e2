#pragma once

#include "simulator/virtual_gpu/simulated_gpu.h"

// How the stand-in libraries reach the one virtual GPU of the process, which liboffprof_virtual_gpu.so holds.
// The CUDA API has no object that it could hang on.
namespace offprof::runtime {

/// The virtual GPU; at the first call with the default profile, unless configured before.
SimulatedGpu& gpu();

/// Before anybody can have configured it: what static initialisers register.
SimulatedGpu& unconfigured_gpu();

/// A library's call that launches kernels of its own, all seen as one.
void launch_library_call(StreamId stream, const char* function);

/// Tells the GPU's observer, if there is one, of a call of the CUDA API from here to the end of the scope. Of
/// calls that functions make among themselves only the outermost counts. `call` must outlive it.
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

/// A function was asked for a size that nobody outside the library knows, and says 0. `what` is noted, once:
/// `workspaces of cuDNN's convolutions`. 0: success.
int unknown_size(const char* what);

/// How many blocks of a kernel a multiprocessor takes, by its limits on threads and blocks alone: the
/// registers and the shared memory of kernels are not known.
int blocks_per_multiprocessor(int block_size);

}  // namespace offprof::runtime

/// What a function that nobody has written calls: notes its name, once. 0: success, in every CUDA library.
extern "C" long offprof_unwritten(const char* function);

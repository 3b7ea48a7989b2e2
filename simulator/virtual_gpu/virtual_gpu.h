#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/virtual_gpu/kernel_cost.h"
#include "simulator/virtual_gpu/kernel_times.h"
#include "simulator/virtual_gpu/profile.h"
#include "traces/link.h"
#include "traces/units.h"
#include "traces/work.h"

namespace offprof {

struct VirtualGpuOptions {
  DeviceProfile profile;
  KernelTimes kernel_times;     ///< recorded on a GPU; empty: none
  bool checks_streams = false;  ///< look for hazards between streams
  /// Give device memory real memory and carry copies, sets and host functions out, in an order drawn from
  /// `seed` among those that streams and events allow. Kernels still do nothing.
  bool carries_out = false;
  std::uint64_t seed = 0;
  /// Told of each function that was called though nobody has written it, once, by name. May be empty.
  std::function<void(const std::string&)> log;
};

/// Something that goes wrong on a GPU if it is unlucky with its timing.
struct StreamHazard {
  std::string what;    ///< `a copy reads a block that a stream may still write`
  std::string first;   ///< the site that came first: `kernel gelu in aten::gelu on stream 0`
  std::string second;  ///< the site that it was found at
};

/// How many launches took their time from where: see KernelCost.
struct LaunchTimes {
  std::int64_t by_op = 0;      ///< the recorded time of the operator
  std::int64_t by_kernel = 0;  ///< the recorded time of the kernel
  std::int64_t estimated = 0;

  bool operator==(const LaunchTimes&) const = default;
};

/// The virtual GPU, as the program and the engine see it beside the CUDA API: it lives in the stand-in
/// libraries. Called by one thread at a time, as the CUDA API is where autograd drives it.
class VirtualGpu {
 public:
  virtual ~VirtualGpu() = default;

  /// Before the first CUDA call; tests may call it again when nothing of the device is in use.
  virtual void configure(VirtualGpuOptions options) = 0;

  /// VirtualGpuOptions::carries_out.
  virtual bool carries_out() const = 0;
  /// What cudaMalloc may give out, at first the profile's. cudaMemGetInfo's total stays the profile's.
  virtual void set_memory_limit(Bytes bytes) = 0;
  /// What cudaMalloc has given out, in granules.
  virtual Bytes used_bytes() const = 0;

  /// The kernels launched until end_op belong to that operator; operators nest. `op` must live as long.
  virtual void begin_op(const OpCall& op) = 0;
  virtual void end_op() = 0;

  /// A caching allocator has handed a block out, on which stream (a cudaStream_t); or has got it back.
  virtual void block_allocated(const void* block, Bytes bytes, void* stream) = 0;
  virtual void block_freed(const void* block) = 0;
  /// Likewise a piece of pinned host memory.
  virtual void host_block_allocated(const void* block, Bytes bytes) = 0;
  virtual void host_block_freed(const void* block) = 0;

  /// When a timing event was reached, exactly: cudaEventElapsedTime rounds to a float. One that was never
  /// recorded is a hazard, and taken to be reached now, where streams are checked, so that the run goes on to
  /// report it; else Error (environment) is thrown.
  virtual Nanoseconds event_time(void* event) = 0;
  /// What the stream that PyTorch computes on was given since the last call, and what that takes.
  virtual Work take_work() = 0;
  /// Likewise all other streams, taken as one; copies over the link are no part of it.
  virtual Work take_side_work() = 0;
  /// What the profile says of the link, and of launching a copy.
  virtual Link link() const = 0;
  /// The host's virtual clock: launches and synchronisation move it.
  virtual Nanoseconds host_time() const = 0;
  /// When something would begin that the stream (a cudaStream_t; nullptr: PyTorch's) were given now.
  virtual Nanoseconds stream_time(void* stream) = 0;
  /// The host, or what the stream is given from here on, waits until then for something that is not the
  /// GPU's.
  virtual void hold_host(Nanoseconds until) = 0;
  virtual void hold_stream(void* stream, Nanoseconds until) = 0;
  /// `point`, an address of the caller's, stands for all that the stream was given so far, until it is
  /// forgotten. The host has seen that it is done: of something that began after it, the end.
  virtual void note_point(const void* point, void* stream) = 0;
  virtual void host_saw_point(const void* point) = 0;
  virtual void forget_point(const void* point) = 0;

  /// Hazards found since the last call; empty where nobody checks.
  virtual std::vector<StreamHazard> take_hazards() = 0;
  virtual std::int64_t launches() const = 0;
  /// Likewise by the kernel's name, or the library's function.
  virtual std::map<std::string, std::int64_t> launches_by_kernel() const = 0;
  /// Of the launches since the last call; nullopt: no recorded times were given.
  virtual std::optional<LaunchTimes> take_launch_times() = 0;
  /// Why the libraries that are loaded have no code for a GPU of the profile's compute capability; empty
  /// where they have some, or nothing can be told of it.
  virtual std::string code_problem() = 0;
  /// Names of functions that were called though nobody has written them.
  virtual std::vector<std::string> unwritten_calls() const = 0;
  /// Sizes that were asked for since the last call though only the library itself knows them, and that count
  /// as 0: `workspaces of cuDNN's convolutions`.
  virtual std::vector<std::string> take_unknown_sizes() = 0;
};

/// The one symbol that the stand-in libraries offer beside CUDA's: `VirtualGpu* offprof_virtual_gpu()`.
inline constexpr const char* kVirtualGpuSymbol = "offprof_virtual_gpu";

}  // namespace offprof

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/devices/virtual_gpu/collectives/cluster_profile.h"
#include "engine/devices/virtual_gpu/gpu_blocks.h"
#include "engine/devices/virtual_gpu/model/kernel_cost.h"
#include "engine/devices/virtual_gpu/model/kernel_times.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "traces/base/time_range.h"
#include "traces/base/units.h"
#include "traces/model/link.h"
#include "traces/model/work.h"

namespace offprof {

struct VirtualGpuOptions {
  DeviceProfile profile;
  KernelTimes kernel_times;     ///< recorded on a GPU; may be empty
  bool checks_streams = false;  ///< run the stream race checker
  /// Functional mode: device memory is backed by real memory, and copies, memsets and host functions really
  /// run, in an order drawn from `seed` among those that streams and events allow. Kernels still do nothing.
  bool functional_mode = false;
  std::uint64_t seed = 0;
  /// Devices that the process sees: those of a node, for one rank of many. It may use one of them.
  int devices = 1;
  /// The experts that a router chooses are taken to get equally many tokens: see KnownValues. Otherwise the
  /// choice is not known.
  bool assumes_balanced_experts = false;
  std::optional<ClusterProfile> cluster{};  ///< links between ranks; nullopt: those usual for the profile
  /// Called once for each CUDA function that was called but is not implemented, with its name. May be empty.
  std::function<void(const std::string&)> log;
};

/// A race between streams, or another misuse of them, that goes wrong on a GPU only with unlucky timing.
struct StreamHazard {
  std::string what;    ///< `a copy reads a block that a stream may still write`
  std::string first;   ///< the site that ran first: `kernel gelu in aten::gelu on stream 0`
  std::string second;  ///< the site at which the hazard was found
};

/// Collectives of one kind that a process has called.
struct CollectiveCount {
  std::string name;  ///< `all_reduce`: see name_of(Collective)
  std::int64_t calls = 0;
  Bytes bytes = 0;          ///< sum of the messages: see CollectiveCost::time_of
  Nanoseconds time_ns = 0;  ///< sum of the modelled durations
  TimeRange range{};        ///< of the sum of real durations
};

struct CollectiveFigures {
  std::int64_t communicators = 0;  ///< the most that existed at one time
  Nanoseconds exposed_ns = 0;      ///< time for which the stream that PyTorch computes on ran or awaited them
  std::vector<CollectiveCount> counts;  ///< of the kinds that were called
  /// A collective that does not match that of a rank which ran before, with both places; empty: none.
  std::string mismatch;
};

/// Number of launches by the source of their time; see KernelCost.
struct LaunchTimes {
  std::int64_t by_op = 0;      ///< took the recorded time of the operator
  std::int64_t by_kernel = 0;  ///< took the recorded time of the kernel
  std::int64_t estimated = 0;

  bool operator==(const LaunchTimes&) const = default;
};

/// Receives the operators that kernels belong to, for the cost model.
class GpuOperators {
 public:
  virtual ~GpuOperators() = default;
  /// Advances the host's clock by the time of that work, which it does `times` times.
  virtual void spend_host_time(HostWork work, std::int64_t times) = 0;
  /// Begins an operator: kernels launched until end_op belong to it. Operators nest. `op` must live until
  /// end_op.
  virtual void begin_op(const OpCall& op) = 0;
  virtual void end_op() = 0;
  /// Returns the number of copies so far that brought the host data which is not known (SmallValues).
  virtual std::int64_t unknown_reads() const = 0;
};

/// Contents of device memory that are known although kernels compute nothing. Whoever knows what operators
/// do sets and forgets them.
class GpuValues {
 public:
  virtual ~GpuValues() = default;
  /// Returns VirtualGpuOptions::assumes_balanced_experts.
  virtual bool assumes_balanced_experts() const = 0;
  /// Returns the contents; an empty vector if some of them are unknown, or if they are more than
  /// SmallValues::kLargest. May wait for another rank that sends them; if that does not come, later copies to
  /// the host fail, as they do on a GPU after an error.
  virtual std::vector<char> read_values(const void* from, Bytes bytes) = 0;
  /// Sets contents that are known until something else is written there, by calls of CUDA or by
  /// forget_values.
  virtual void set_values(const void* to, const std::vector<char>& contents) = 0;
  virtual void forget_values(const void* from, Bytes bytes) = 0;
  /// Sets the number that the host reads, until the next call, where it reads an unknown number of up to 8
  /// bytes; nullopt: it reads zero.
  virtual void answer_reads(std::optional<std::int64_t> number) = 0;
  /// Returns how many kernels were launched outside of operators. What they have written is not known.
  virtual std::int64_t launches_outside_operators() const = 0;
};

/// Clocks of the virtual GPU. Launches and synchronisation advance them.
class GpuClocks {
 public:
  virtual ~GpuClocks() = default;
  /// Returns the exact time at which a timing event was reached; cudaEventElapsedTime rounds to a float. If
  /// the event was never recorded: with the race checker on, reports a hazard and returns the current time,
  /// so that the run goes on to report it; otherwise throws Error (environment).
  virtual Nanoseconds event_time(void* event) = 0;
  /// Returns the host's virtual clock.
  virtual Nanoseconds host_time() const = 0;
  /// Returns the time at which work would begin if the stream (a cudaStream_t; nullptr: PyTorch's) were given
  /// it now.
  virtual Nanoseconds stream_time(void* stream) = 0;
  /// Makes the host, or all later work of the stream, wait until that time for something outside the GPU.
  virtual void hold_host(Nanoseconds until) = 0;
  virtual void hold_stream(void* stream, Nanoseconds until) = 0;
  /// Marks a point in the stream: `point`, an address of the caller's, stands for all work given to the
  /// stream so far, until forget_point. host_saw_point records that the host has seen the end of something
  /// that began after the point, so all of that work is done.
  virtual void note_point(const void* point, void* stream) = 0;
  virtual void host_saw_point(const void* point) = 0;
  virtual void forget_point(const void* point) = 0;
};

/// Findings of the virtual GPU about the program that uses it.
class GpuFindings {
 public:
  virtual ~GpuFindings() = default;
  /// Returns the hazards found since the last call; empty if streams are not checked.
  virtual std::vector<StreamHazard> take_hazards() = 0;
  virtual std::int64_t launches() const = 0;
  /// Returns how many kernels, fills and copies all streams were given so far.
  virtual std::int64_t commands_given() const = 0;
  /// Returns the number of launches by the name of the kernel, or of the library's function.
  virtual std::map<std::string, std::int64_t> launches_by_kernel() const = 0;
  /// Returns the counts for the launches since the last call; nullopt: no recorded times were given.
  virtual std::optional<LaunchTimes> take_launch_times() = 0;
  /// Returns the operations of the kernels since the last call: see StepSize::flops.
  virtual double take_flops() = 0;
  /// Returns why the loaded libraries have no code for a GPU of the profile's compute capability. Empty if
  /// they have some, or if this cannot be determined.
  virtual std::string code_problem() = 0;
  /// Returns the names of the CUDA functions that were called but are not implemented.
  virtual std::vector<std::string> unwritten_calls() const = 0;
  /// Returns the sizes that were requested since the last call but that only the real library knows. They
  /// count as 0. Example: `workspaces of cuDNN's convolutions`.
  virtual std::vector<std::string> take_unknown_sizes() = 0;
  /// Returns the largest number of a device that the program chose and that does not exist; nullopt: none.
  virtual std::optional<int> missing_device() const = 0;
  virtual CollectiveFigures collective_figures() const = 0;
};

/// Interface of the virtual GPU for offprof and the engine, in addition to the CUDA API. The implementation
/// lives in the stand-in libraries. Called by one thread at a time, as autograd calls the CUDA API. Code that
/// needs one concern takes that interface alone.
class VirtualGpu : public GpuOperators,
                   public GpuValues,
                   public GpuBlocks,
                   public GpuClocks,
                   public GpuFindings {
 public:
  /// Sets the options. Call it before the first CUDA call; tests may call it again when nothing of the device
  /// is in use.
  virtual void configure(VirtualGpuOptions options) = 0;
  /// Returns VirtualGpuOptions::functional_mode.
  virtual bool is_functional() const = 0;
  /// Sets how many bytes cudaMalloc may give out. The default is the profile's memory without that of the
  /// context. The total that cudaMemGetInfo reports stays the profile's.
  virtual void set_memory_limit(Bytes bytes) = 0;
  /// Returns DeviceProfile::context_bytes.
  virtual Bytes context_bytes() const = 0;
  /// Returns the bytes that cudaMalloc has given out, rounded up to granules.
  virtual Bytes used_bytes() const = 0;
  /// Returns the profile's figures for the link and for launching a copy.
  virtual Link link() const = 0;
  /// Returns the number of the device that the process uses: the first one that it allocated memory on; 0 if
  /// there is none.
  virtual int device() const = 0;
  /// Notes how many ranks a group has, and on how many nodes they are, which other ranks would have told.
  /// `key` is the unique id of the group's communicator; for a part that is split off, its color as a number,
  /// or `being made` if that is not known beforehand. `name` is the same on all ranks of the group; empty:
  /// `key` is.
  virtual void note_group(const std::string& key, int ranks, int nodes, const std::string& name) = 0;
  /// Waits until the watchdogs of ProcessGroupNCCL have seen the ends of collectives so far: see WatchedEnds.
  virtual void let_watchdogs_look() = 0;
  /// Lets the ranks of a job that run at the same time on this machine exchange small values and compare
  /// their collectives, by files in `folder`, which exists. This process is `rank` of the job, which has
  /// `ranks`. A rank waits for `patience_s` seconds for a value of another, or until the number of SIGINT or
  /// SIGTERM can be read from the file `signals` (-1: none). 0: the ranks do not run at the same time, so
  /// that they compare their collectives only. `call_site` returns where the program is, for messages; it may
  /// be called on any thread.
  virtual void exchange_with_peers(const std::string& folder, int rank, int ranks, int patience_s,
                                   int signals, std::function<std::string()> call_site) = 0;
  /// The collectives that this thread calls carry Python objects from now on, or no more. Their contents take
  /// another way: what the host copies of them is no unknown value, and a rank alone, which does not know the
  /// objects of ranks that run later, does not compare their sizes.
  virtual void note_objects(bool are_carried) = 0;
  /// Exchanges nothing with other ranks from now on: this one stops before its program has ended.
  virtual void stop_exchange() = 0;
  /// Returns the work given since the last call to the stream that PyTorch computes on, and its durations:
  /// see VirtualTime::take_work.
  virtual Work take_work() = 0;
  /// Begins or ends to note the commands of other streams, and returns those noted since the last call: see
  /// VirtualTime.
  virtual void note_stream_commands(bool noted) = 0;
  virtual std::vector<StreamCommand> take_stream_commands() = 0;
  /// Returns the same for all other streams together, without copies over the link.
  virtual Work take_side_work() = 0;
  /// Returns the time that the stream that PyTorch computes on lost by copies since the last call: see
  /// VirtualTime.
  virtual Nanoseconds take_compute_loss() = 0;
};

/// The one symbol that the stand-in libraries export besides CUDA's: `VirtualGpu* offprof_virtual_gpu()`.
inline constexpr const char* kVirtualGpuSymbol = "offprof_virtual_gpu";

}  // namespace offprof

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "engine/devices/virtual_gpu/kernel_code/kernel_table.h"
#include "engine/devices/virtual_gpu/model/kernel_cost.h"
#include "engine/devices/virtual_gpu/model/op_stack.h"
#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "engine/devices/virtual_gpu/state/execution_state.h"
#include "engine/devices/virtual_gpu/state/gpu_status.h"
#include "engine/devices/virtual_gpu/state/gpu_streams.h"
#include "traces/base/units.h"

namespace offprof {

/// Kernels of the virtual GPU: the code of the loaded modules, the operators that launches belong to, and the
/// launches with their modelled times. A kernel computes nothing.
class GpuKernels {
 public:
  /// `execution` and `streams` must outlive it.
  GpuKernels(ExecutionState& execution, GpuStreams& streams) : state_(execution), streams_(streams) {}

  /// See KernelTable for the arguments.
  void register_module(const void* fat_binary);
  void register_kernel(const void* host_stub, const char* mangled_name, const void* module);
  /// Returns the code of the kernel that this GPU runs; nullopt: there is none.
  std::optional<GpuCode> code_of(const void* host_stub);
  /// See VirtualGpu::code_problem.
  std::string code_problem();

  /// See GpuOperators.
  void spend_host_time(HostWork work, std::int64_t times);
  /// Begins or ends an operator of the calling thread.
  void begin_op(const OpCall& op);
  void end_op();
  /// Adds a block that the operator of the calling thread has allocated. The caller holds the lock.
  void add_allocated(const void* block, Bytes bytes);
  /// See OpStack. `workspace` may be null.
  void exclude_workspace(const void* workspace);

  /// Launches a kernel that is given by its name, or by the address of its host stub.
  GpuStatus launch(StreamId stream, const KernelLaunch& launch);
  GpuStatus launch(StreamId stream, const void* host_stub, KernelLaunch launch);

  /// Launches a kernel of that duration, which changes no SmallValues. The caller holds the lock, and the
  /// stream exists.
  void run_for(StreamId stream, std::string_view name, Nanoseconds duration);

  /// See GpuValues. Does not lock.
  std::int64_t launches_outside_operators() const { return launches_outside_operators_; }
  /// Counts of launches; see VirtualGpu.
  std::int64_t launches() const;
  std::map<std::string, std::int64_t> launches_by_kernel() const;
  std::optional<LaunchTimes> take_launch_times();
  double take_flops();

  /// Takes the profile and the recorded times of the options, and sets the counts to 0. The caller holds the
  /// lock.
  void restart();

 private:
  /// Returns the operator stack of the calling thread.
  OpStack& ops() { return ops_[std::this_thread::get_id()]; }
  int capability() const;
  void run(StreamId stream, const KernelLaunch& launch, std::string_view symbol);
  void run_for(StreamId stream, const KernelLaunch& launch, std::string_view symbol, Nanoseconds duration);
  /// Returns the host's time for a launch that the calling thread makes now.
  Nanoseconds launch_ns();
  void forget_written();
  void count_time(TimeSource source);

  ExecutionState& state_;
  GpuStreams& streams_;
  KernelTable table_;
  std::optional<KernelCost> cost_;          ///< empty before the first restart
  std::map<std::thread::id, OpStack> ops_;  ///< operators may run on several threads at once
  LaunchTimes launch_times_;
  double flops_ = 0;
  std::atomic<std::int64_t> launches_outside_operators_ = 0;
};

}  // namespace offprof

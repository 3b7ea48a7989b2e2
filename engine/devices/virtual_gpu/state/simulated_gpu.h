#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/devices/virtual_gpu/state/execution_state.h"
#include "engine/devices/virtual_gpu/state/gpu_collectives.h"
#include "engine/devices/virtual_gpu/state/gpu_copies.h"
#include "engine/devices/virtual_gpu/state/gpu_kernels.h"
#include "engine/devices/virtual_gpu/state/gpu_memory.h"
#include "engine/devices/virtual_gpu/state/gpu_streams.h"
#include "engine/devices/virtual_gpu/state/unsupported_calls.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// The virtual GPU behind the stand-in libraries. It consists of parts with one concern each, which the
/// libraries call, and answers offprof and the engine as a VirtualGpu. Safe to call from several threads.
class SimulatedGpu final : public VirtualGpu {
 public:
  SimulatedGpu();
  ~SimulatedGpu() override;

  GpuMemory& memory() { return memory_; }
  GpuStreams& streams() { return streams_; }
  GpuKernels& kernels() { return kernels_; }
  GpuCopies& copies() { return copies_; }
  GpuCollectives& collectives() { return collectives_; }
  UnsupportedCalls& unsupported_calls() { return unsupported_calls_; }

  /// Configures the profile `h200` if configure was never called.
  void configure_by_default();
  DeviceProfile profile() const;
  /// Returns VirtualGpuOptions::devices.
  int devices() const;

  /// Sets the observer, or removes it (nullptr, which costs nothing). The observer must outlive every call
  /// that began before it was removed.
  void set_observer(GpuObserver* observer) { state_.observer = observer; }
  GpuObserver* observer() const { return state_.observer.load(std::memory_order_relaxed); }

  // VirtualGpu
  void configure(VirtualGpuOptions options) override;
  bool is_functional() const override { return state_.functional_mode.has_value(); }
  void set_memory_limit(Bytes bytes) override { memory_.set_limit(bytes); }
  Bytes context_bytes() const override { return state_.options.profile.context_bytes; }
  Bytes used_bytes() const override { return memory_.used_bytes(); }
  void spend_host_time(HostWork work, std::int64_t times) override { kernels_.spend_host_time(work, times); }
  void begin_op(const OpCall& op) override { kernels_.begin_op(op); }
  void end_op() override { kernels_.end_op(); }
  void block_allocated(const void* block, Bytes bytes, void* stream) override;
  void block_freed(const void* block) override;
  void free_requested() override;
  std::vector<std::int32_t> take_free_points() override;
  void host_block_allocated(const void* block, Bytes bytes) override;
  void host_block_freed(const void* block) override;
  Nanoseconds event_time(void* event) override { return streams_.event_time(event); }
  Work take_work() override;
  Work take_side_work() override;
  Nanoseconds take_compute_loss() override;
  std::int64_t unknown_reads() const override;
  bool assumes_balanced_experts() const override { return state_.options.assumes_balanced_experts; }
  std::vector<char> read_values(const void* from, Bytes bytes) override;
  void set_values(const void* to, const std::vector<char>& contents) override;
  void forget_values(const void* from, Bytes bytes) override;
  void answer_reads(std::optional<std::int64_t> number) override;
  std::int64_t launches_outside_operators() const override { return kernels_.launches_outside_operators(); }
  void note_stream_commands(bool noted) override;
  std::vector<StreamCommand> take_stream_commands() override;
  Link link() const override;
  Nanoseconds host_time() const override;
  Nanoseconds stream_time(void* stream) override;
  void hold_host(Nanoseconds until) override;
  void hold_stream(void* stream, Nanoseconds until) override;
  void note_point(const void* point, void* stream) override { streams_.note_point(point, stream); }
  void host_saw_point(const void* point) override { streams_.host_saw_point(point); }
  void forget_point(const void* point) override { streams_.forget_point(point); }
  std::vector<StreamHazard> take_hazards() override;
  std::int64_t launches() const override { return kernels_.launches(); }
  std::int64_t commands_given() const override;
  std::map<std::string, std::int64_t> launches_by_kernel() const override;
  std::optional<LaunchTimes> take_launch_times() override { return kernels_.take_launch_times(); }
  double take_flops() override { return kernels_.take_flops(); }
  std::string code_problem() override { return kernels_.code_problem(); }
  std::vector<std::string> unwritten_calls() const override;
  std::vector<std::string> take_unknown_sizes() override;
  std::optional<int> missing_device() const override { return unsupported_calls_.missing_device(); }
  CollectiveFigures collective_figures() const override { return collectives_.figures(); }
  int device() const override { return memory_.device(); }
  void exchange_with_peers(const std::string& folder, int rank, int ranks, int patience_s, int signals,
                           std::function<std::string()> call_site) override {
    std::optional<PeerPatience> patience;
    if (patience_s > 0) patience = {std::chrono::seconds(patience_s), signals};
    collectives_.exchange_with_peers({folder, rank, ranks, patience, std::move(call_site)});
  }
  void note_objects(bool are_carried) override { collectives_.note_objects(are_carried); }
  void stop_exchange() override { collectives_.stop_exchange(); }
  void let_watchdogs_look() override { collectives_.let_watchdogs_look(); }
  void note_group(const std::string& key, int ranks, int nodes, const std::string& name) override {
    collectives_.note_group(key, {{.ranks = ranks, .nodes = nodes}, name});
  }

 private:
  void restart(VirtualGpuOptions options);

  ExecutionState state_;
  bool is_configured_ = false;
  GpuMemory memory_{state_};
  GpuStreams streams_{state_, memory_};
  GpuKernels kernels_{state_, streams_};
  GpuCopies copies_{state_, memory_, streams_};
  GpuCollectives collectives_{state_, kernels_};
  UnsupportedCalls unsupported_calls_{state_};
};

}  // namespace offprof

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/devices/virtual_gpu/model/op_stack.h"
#include "engine/devices/virtual_gpu/races/stream_races.h"
#include "engine/devices/virtual_gpu/state/address_space.h"
#include "engine/devices/virtual_gpu/state/functional_mode.h"
#include "engine/devices/virtual_gpu/state/gpu_observer.h"
#include "engine/devices/virtual_gpu/state/kernel_table.h"
#include "engine/devices/virtual_gpu/state/pinned_memory.h"
#include "engine/devices/virtual_gpu/state/virtual_time.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// Result of a CUDA API call.
enum class GpuStatus {
  kOk,
  kNotReady,
  kOutOfMemory,
  kInvalidValue,
  kInvalidHandle,  ///< unknown stream or event
  kHostRangePinned,
  kHostRangeNotPinned,
  kNoCode,  ///< the kernel's module holds no code for this GPU
};

/// A copy as cudaMemcpy2D describes it; a plain copy is one row.
struct CopyRows {
  void* to = nullptr;
  const void* from = nullptr;
  Bytes bytes = 0;  ///< bytes of a row
  Bytes rows = 1;
  Bytes to_pitch = 0, from_pitch = 0;
};

/// Behaviour of a call: it returns at once, or waits until its work is done.
enum class HostWaits { kNever, kUntilDone };

/// CUDA's view of an address.
struct AddressInfo {
  MemoryPlace place = MemoryPlace::kPageable;
  AddressRange range;  ///< the allocation around the address; empty if it is pageable
};

/// State of the virtual GPU behind the stand-in libraries. Handles of streams and events are opaque and are
/// never reused; nullptr is the legacy default stream.
///
/// One mutex guards all of it, since autograd calls CUDA from its own thread.
class SimulatedGpu final : public VirtualGpu {
 public:
  SimulatedGpu();
  ~SimulatedGpu() override;

  // VirtualGpu
  void configure(VirtualGpuOptions options) override;
  void set_memory_limit(Bytes bytes) override;
  Bytes used_bytes() const override;
  void begin_op(const OpCall& op) override;
  void end_op() override;
  void block_allocated(const void* block, Bytes bytes, void* stream) override;
  void block_freed(const void* block) override;
  void host_block_allocated(const void* block, Bytes bytes) override;
  void host_block_freed(const void* block) override;
  Nanoseconds event_time(void* event) override;
  Nanoseconds host_time() const override;
  Nanoseconds stream_time(void* stream) override;
  void hold_host(Nanoseconds until) override;
  void hold_stream(void* stream, Nanoseconds until) override;
  void note_point(const void* point, void* stream) override;
  void host_saw_point(const void* point) override;
  void forget_point(const void* point) override;
  Work take_work() override;
  Work take_side_work() override;
  bool carries_out() const override { return functional_mode_.has_value(); }
  Link link() const override;
  std::vector<StreamHazard> take_hazards() override;
  std::int64_t launches() const override;
  std::map<std::string, std::int64_t> launches_by_kernel() const override;
  std::optional<LaunchTimes> take_launch_times() override;
  std::string code_problem() override;
  std::vector<std::string> unwritten_calls() const override;
  std::vector<std::string> take_unknown_sizes() override;

  /// Configures the profile `h200` if configure was never called.
  void configure_by_default();
  DeviceProfile profile() const;

  /// Sets the observer, or removes it (nullptr, which costs nothing). The observer must outlive every call
  /// that began before it was removed.
  void set_observer(GpuObserver* observer) { observer_ = observer; }
  GpuObserver* observer() const { return observer_.load(std::memory_order_relaxed); }

  // Device memory
  Bytes memory_limit() const;
  /// Sets `*address` only if the result is kOk. 0 bytes give nullptr.
  GpuStatus allocate(void** address, Bytes bytes);
  /// Waits for the device, as cudaFree does.
  GpuStatus free(void* address);
  AddressInfo describe(const void* address) const;
  /// The driver's virtual memory; see AddressSpace.
  GpuStatus reserve_addresses(void** address, Bytes bytes);
  GpuStatus release_addresses(void* address, Bytes bytes);
  GpuStatus create_memory(AddressSpace::Handle* handle, Bytes bytes);
  GpuStatus release_memory(AddressSpace::Handle handle);
  GpuStatus retain_memory(AddressSpace::Handle* handle, const void* address);
  GpuStatus map_memory(void* address, Bytes bytes, AddressSpace::Handle handle);
  GpuStatus unmap_memory(void* address, Bytes bytes);
  GpuStatus set_access(const void* address, Bytes bytes) const;

  // Pinned memory
  GpuStatus allocate_pinned(void** address, Bytes bytes);
  /// Waits for the device, as cudaFreeHost does.
  GpuStatus free_pinned(void* address);
  GpuStatus pin(void* address, Bytes bytes);
  GpuStatus unpin(void* address);

  // Streams and events
  StreamId create_stream(StreamKind kind);
  GpuStatus destroy_stream(StreamId stream);
  bool has_stream(StreamId stream) const;
  GpuStatus query_stream(StreamId stream);
  GpuStatus synchronise_stream(StreamId stream);
  void synchronise_device();
  /// Creates an event. An event that keeps no time has no elapsed time.
  EventId create_event(bool keeps_time);
  GpuStatus destroy_event(EventId event);
  GpuStatus record_event(EventId event, StreamId stream);
  GpuStatus wait_event(StreamId stream, EventId event);
  /// Makes later work of the stream wait until the word in pinned memory has reached `value`, both counted
  /// modulo 2^32. Outside functional mode it does not wait.
  GpuStatus wait_value(StreamId stream, const std::uint32_t* word, std::uint32_t value);
  GpuStatus query_event(EventId event);
  GpuStatus synchronise_event(EventId event);
  /// Returns kInvalidHandle if one of the events was never recorded or keeps no time.
  GpuStatus elapsed_time(Nanoseconds* elapsed, EventId from, EventId to);

  // Work
  GpuStatus launch(StreamId stream, const KernelLaunch& launch);
  /// Launches a kernel that is given by the address of its host stub.
  GpuStatus launch(StreamId stream, const void* host_stub, KernelLaunch launch);
  GpuStatus copy(StreamId stream, const CopyRows& rows, HostWaits host_waits);
  GpuStatus set(StreamId stream, void* to, int value, Bytes bytes, HostWaits host_waits);
  /// Calls `function` on the host when the stream reaches it, or at once outside functional mode.
  GpuStatus call_host(StreamId stream, std::function<void()> function);

  // Modules
  /// See KernelTable for the arguments.
  void register_module(const void* fat_binary);
  void register_kernel(const void* host_stub, const char* mangled_name, const void* module);
  /// Returns the code of the kernel that this GPU runs; nullopt: there is none.
  std::optional<GpuCode> code_of(const void* host_stub);
  void register_variable(const void* host_shadow, Bytes bytes);
  /// Returns nullptr if there is no such variable.
  void* variable_address(const void* host_shadow);

  void note_unwritten(const char* function);
  void note_unknown_size(const char* what);

 private:
  using Lock = std::lock_guard<std::mutex>;

  /// Returns the operator stack of the calling thread.
  OpStack& ops() { return ops_[std::this_thread::get_id()]; }

  struct Variable {
    Bytes bytes = 0;
    void* address = nullptr;
  };

  void restart(VirtualGpuOptions options);
  StreamId next_id() {
    return reinterpret_cast<StreamId>(next_id_ += kIdStep);  // NOLINT(performance-no-int-to-ptr): a handle
  }
  MemoryPlace place_of(const void* address) const;
  void wait_for_stream(StreamId stream);
  void wait_for_device();
  void run_kernel(StreamId stream, const KernelLaunch& launch, std::string_view symbol);
  void count_launch_time(TimeSource source);
  int capability() const;
  Nanoseconds memory_duration(Bytes bytes) const;
  void copy_host(StreamId stream, const CopyRows& rows);
  TimeSpan time_copy(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes);
  void tell_waited(WaitedFor what, const void* id, Nanoseconds since, bool is_done = true) const;
  void tell_memory(MemoryPlace place, const void* address, Bytes bytes) const;
  void carry_out_row(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes, bool is_staged);
  bool reads_back_a_value(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes) const;

  static constexpr std::uintptr_t kIdStep = 16;

  mutable std::mutex mutex_;
  std::atomic<GpuObserver*> observer_ = nullptr;
  VirtualGpuOptions options_;
  bool is_configured_ = false;
  AddressSpace memory_;
  PinnedMemory pinned_;
  VirtualTime time_;
  std::optional<KernelCost> cost_;
  std::optional<StreamRace> order_;                    ///< empty if streams are not checked
  std::optional<FunctionalModeWork> functional_mode_;  ///< empty outside functional mode
  std::map<std::thread::id, OpStack> ops_;             ///< operators may run on several threads at once
  KernelTable kernels_;
  LaunchTimes launch_times_;
  std::unordered_map<const void*, Variable> variables_;
  std::map<StreamId, StreamKind> streams_;
  std::unordered_set<StreamId> kernel_streams_;  ///< streams that were given kernels, in functional mode
  std::unordered_set<EventId> timeless_events_;
  std::vector<std::string> unwritten_;
  std::set<std::string> unknown_sizes_;
  std::uintptr_t next_id_ = 1 << 16;
};

}  // namespace offprof

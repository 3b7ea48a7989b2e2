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

#include "simulator/virtual_gpu/carried_out.h"
#include "simulator/virtual_gpu/device_memory.h"
#include "simulator/virtual_gpu/gpu_observer.h"
#include "simulator/virtual_gpu/kernel_table.h"
#include "simulator/virtual_gpu/op_stack.h"
#include "simulator/virtual_gpu/pinned_memory.h"
#include "simulator/virtual_gpu/stream_order.h"
#include "simulator/virtual_gpu/virtual_gpu.h"
#include "simulator/virtual_gpu/virtual_time.h"

namespace offprof {

/// How a call of the CUDA API went.
enum class GpuStatus {
  kOk,
  kNotReady,
  kOutOfMemory,
  kInvalidValue,
  kInvalidHandle,  ///< of a stream or an event
  kHostRangePinned,
  kHostRangeNotPinned,
  kNoCode,  ///< the kernel's module holds none for this GPU
};

/// A copy as cudaMemcpy2D describes it; a plain one is one row.
struct CopyRows {
  void* to = nullptr;
  const void* from = nullptr;
  Bytes bytes = 0;  ///< of a row
  Bytes rows = 1;
  Bytes to_pitch = 0, from_pitch = 0;
};

/// Whether a call returns before the work is done.
enum class HostWaits { kNever, kUntilDone };

/// What an address is to CUDA.
struct AddressInfo {
  MemoryPlace place = MemoryPlace::kPageable;
  AddressRange range;  ///< the allocation around it; empty where it is pageable
};

/// The state of the virtual GPU: what the stand-in libraries keep books of. Handles of streams and events are
/// opaque and never used twice; nullptr is the legacy default stream.
///
/// All of it is guarded by one mutex, since autograd drives CUDA from a thread of its own.
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
  bool carries_out() const override { return carried_out_.has_value(); }
  Link link() const override;
  std::vector<StreamHazard> take_hazards() override;
  std::int64_t launches() const override;
  std::map<std::string, std::int64_t> launches_by_kernel() const override;
  std::optional<LaunchTimes> take_launch_times() override;
  std::string code_problem() override;
  std::vector<std::string> unwritten_calls() const override;
  std::vector<std::string> take_unknown_sizes() override;

  /// Takes the profile `h200` where nobody has called configure.
  void configure_by_default();
  DeviceProfile profile() const;

  /// nullptr: nobody is told of anything, and it costs nothing. The observer must live as long as a call that
  /// began before it was taken away.
  void set_observer(GpuObserver* observer) { observer_ = observer; }
  GpuObserver* observer() const { return observer_.load(std::memory_order_relaxed); }

  // Device memory
  Bytes memory_limit() const;
  /// `*address` is set only where the result is kOk. No bytes: nullptr.
  GpuStatus allocate(void** address, Bytes bytes);
  /// Waits for the device, as cudaFree does.
  GpuStatus free(void* address);
  AddressInfo describe(const void* address) const;
  /// The driver's virtual memory; see DeviceMemory.
  GpuStatus reserve_addresses(void** address, Bytes bytes);
  GpuStatus release_addresses(void* address, Bytes bytes);
  GpuStatus create_memory(DeviceMemory::Handle* handle, Bytes bytes);
  GpuStatus release_memory(DeviceMemory::Handle handle);
  GpuStatus retain_memory(DeviceMemory::Handle* handle, const void* address);
  GpuStatus map_memory(void* address, Bytes bytes, DeviceMemory::Handle handle);
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
  /// An event that keeps no time cannot be asked for it.
  EventId create_event(bool keeps_time);
  GpuStatus destroy_event(EventId event);
  GpuStatus record_event(EventId event, StreamId stream);
  GpuStatus wait_event(StreamId stream, EventId event);
  /// What the stream is given from here on begins when the word in pinned memory has come to `value`, both
  /// counted modulo 2^32. At once where copies are not carried out.
  GpuStatus wait_value(StreamId stream, const std::uint32_t* word, std::uint32_t value);
  GpuStatus query_event(EventId event);
  GpuStatus synchronise_event(EventId event);
  /// kInvalidHandle: one of them was never recorded, or keeps no time.
  GpuStatus elapsed_time(Nanoseconds* elapsed, EventId from, EventId to);

  // Work
  GpuStatus launch(StreamId stream, const KernelLaunch& launch);
  /// A kernel by the address of its host stub.
  GpuStatus launch(StreamId stream, const void* host_stub, KernelLaunch launch);
  GpuStatus copy(StreamId stream, const CopyRows& rows, HostWaits host_waits);
  GpuStatus set(StreamId stream, void* to, int value, Bytes bytes, HostWaits host_waits);
  /// Called on the host when the stream has come to it; at once where copies are not carried out.
  GpuStatus call_host(StreamId stream, std::function<void()> function);

  // Modules
  /// For the arguments see KernelTable.
  void register_module(const void* fat_binary);
  void register_kernel(const void* host_stub, const char* mangled_name, const void* module);
  /// What this GPU runs of the kernel; nullopt: nothing.
  std::optional<GpuCode> code_of(const void* host_stub);
  void register_variable(const void* host_shadow, Bytes bytes);
  /// nullptr: no such variable.
  void* variable_address(const void* host_shadow);

  void note_unwritten(const char* function);
  void note_unknown_size(const char* what);

 private:
  using Lock = std::lock_guard<std::mutex>;

  /// Of the calling thread.
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
  DeviceMemory memory_;
  PinnedMemory pinned_;
  VirtualTime time_;
  std::optional<KernelCost> cost_;
  std::optional<StreamOrder> order_;           ///< where streams are checked
  std::optional<CarriedOutWork> carried_out_;  ///< where copies are carried out
  std::map<std::thread::id, OpStack> ops_;     ///< operators may run on several threads at once
  KernelTable kernels_;
  LaunchTimes launch_times_;
  std::unordered_map<const void*, Variable> variables_;
  std::map<StreamId, StreamKind> streams_;
  std::unordered_set<StreamId> kernel_streams_;  ///< given kernels, where copies are carried out
  std::unordered_set<EventId> timeless_events_;
  std::vector<std::string> unwritten_;
  std::set<std::string> unknown_sizes_;
  std::uintptr_t next_id_ = 1 << 16;
};

}  // namespace offprof

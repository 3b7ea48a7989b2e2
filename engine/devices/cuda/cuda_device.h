#pragma once

#include <c10/cuda/CUDAStream.h>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/devices/cuda/allocation_books.h"
#include "engine/devices/cuda/cuda_queues.h"
#include "engine/devices/cuda/event_pool.h"
#include "engine/devices/cuda/pinned_pool.h"
#include "engine/devices/device.h"

namespace offprof {

/// NVIDIA GPU, through LibTorch and the CUDA runtime. Tensors are in PyTorch's caching allocator, compute is
/// on the default stream, each copy direction has a stream, and host memory is pinned. Streams wait for each
/// other by events alone; nothing blocks the host but synchronize and the functions documented to wait.
///
/// Blocks are allocated and freed on the compute stream only. A copy waits for an event of that stream, so a
/// block for a reload may have had any use there before. A block is freed after the compute stream has waited
/// for its copies. So no block needs recordStream. A model that computes on other streams is refused: see
/// check_compute_stream.
///
/// The calling thread may have another device as its current one.
class CudaDevice : public Device {
 public:
  /// Throws Error (environment) if CUDA does not work on this machine.
  explicit CudaDevice(c10::DeviceIndex index);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  c10::Device torch_device() const override { return {c10::kCUDA, index_}; }
  std::string description() const override;
  std::optional<Bytes> memory_bytes() const override { return total_bytes_; }
  std::optional<DeviceProfile> gpu_properties() const override;

  std::optional<AllocationId> allocation_of(const c10::Storage& storage) const override {
    return books_.id_of(storage);
  }
  AllocationId next_allocation() const override { return books_.next_id(); }
  c10::Storage allocate(Bytes bytes) override;
  Bytes live_bytes() const override { return books_.live_bytes(); }
  Bytes peak_bytes() const override { return books_.peak_bytes(); }
  void reset_peak() override;
  void reset_own_peak() override { books_.reset_peak(); }
  /// Limits the memory that the caching allocator takes from the device, like PyTorch's memory fraction. A
  /// smaller fraction in the allocator's settings still applies.
  void set_capacity(std::optional<Bytes> bytes) override;
  std::optional<OutOfMemory> take_out_of_memory() override { return books_.take_out_of_memory(); }
  void set_listener(AllocationListener* listener) override { books_.set_listener(listener); }

  std::optional<CacheUse> cache_use() const override;
  void release_cache() override;
  void finish_frees() override;
  std::optional<Bytes> used_beside_allocator() const override;
  std::optional<AllocatorState> allocator_state(
      const std::function<std::int32_t(AllocationId)>& storage_of) const override;

  std::byte* allocate_host(Bytes bytes) override;
  void free_host(std::byte* buffer, Bytes bytes) override { pool_.free(buffer, bytes); }
  void set_host_capacity(std::optional<Bytes> bytes) override { pool_.set_cap(bytes); }
  std::optional<Bytes> host_reserved_bytes() const override { return pool_.reserved_bytes(); }
  Bytes trim_host() override;
  std::optional<Error> take_host_refusal() override { return std::exchange(host_refusal_, std::nullopt); }
  std::vector<std::string> take_notes() override;
  void check_compute_stream() override;
  bool is_of_other_stream(const c10::Storage& storage) const override;
  void check_stream_of(const c10::Storage& storage) override;
  std::optional<Error> take_stream_refusal() override { return std::exchange(stream_refusal_, std::nullopt); }

  Event copy(CopyQueue queue, const CopyRequest& request) override;
  Event copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to, std::int64_t tag) override;
  void wait(CopyQueue queue, Event event) override;
  std::vector<CopyRecord> take_copy_records() override;

  void open_disk(const DiskRequest& request) override;
  DeviceDisk* disk() override { return disk_.get(); }

  TimeMark mark() noexcept override;
  std::exception_ptr take_mark_failure() override;
  void synchronize() override;
  Nanoseconds time_of(TimeMark mark) const override;
  void forget_marks() override;
  Nanoseconds take_exposed_ns() override;

 protected:
  AllocationBooks& books() const { return books_; }
  /// Returns the time from one recorded event to another. The device must be idle.
  virtual Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) const;
  /// Sets the cost of the staging kernels of the last copy.
  void note_staging(CopyQueue which, const Work& staging) { queue(which).copies.back().staging = staging; }
  cudaStream_t stream_of(CopyQueue which) { return queue(which).stream.stream(); }
  /// Event whose time is origin_ns on this device's clock.
  cudaEvent_t origin() const { return origin_; }
  Nanoseconds origin_ns() const { return origin_ns_; }
  /// Replaces the disk. The device must be idle.
  void set_disk(std::unique_ptr<DeviceDisk> disk) { disk_ = std::move(disk); }
  void set_books_capacity(std::optional<Bytes> bytes) { books_.set_capacity(bytes); }

 private:
  struct Copy {
    CopyDirection direction = CopyDirection::kD2h;
    Bytes bytes = 0;
    std::int64_t tag = 0;
    cudaEvent_t begin = nullptr, end = nullptr;
    Work staging{};
  };
  struct Queue {
    explicit Queue(const c10::cuda::CUDAStream& on) : stream(on) {}
    c10::cuda::CUDAStream stream;
    std::vector<Copy> copies;  ///< since the last take_copy_records
    Event taken = 0;           ///< number of earlier copies
    Event waited = 0;          ///< the compute stream has waited for all copies up to this one
  };

  /// Wait of the compute stream for a copy.
  struct Wait {
    cudaEvent_t copy_end = nullptr;
    cudaEvent_t before = nullptr, after = nullptr;  ///< around the wait, on the compute stream
  };

  [[noreturn]] void refuse_streams();
  Queue& queue(CopyQueue which) { return queues_[static_cast<std::size_t>(which)]; }
  /// Orders later work of the queue after the work that the compute stream has so far.
  void follow_compute(Queue& queue);
  Event add_copy(Queue& queue, const CopyRequest& request);
  Nanoseconds since_origin(cudaEvent_t event) const { return origin_ns_ + elapsed(origin_, event); }

  c10::DeviceIndex index_;
  Bytes total_bytes_ = 0;
  AllocationBooks& books_;
  double own_fraction_;  ///< limit on memory from the allocator's settings; 1: no limit
  cudaStream_t compute_;
  std::array<Queue, 2> queues_;
  CudaQueues disk_queues_;
  std::unique_ptr<DeviceDisk> disk_;
  /// Recorded anew for every wait; a wait keeps the point it was given.
  cudaEvent_t compute_event_ = nullptr;
  EventPool events_;
  cudaEvent_t origin_ = nullptr;  ///< its time is origin_ns_; other events are timed from it
  Nanoseconds origin_ns_ = 0;
  Nanoseconds origin_steady_ns_ = 0;  ///< the same moment on the host's clock, within microseconds
  std::mutex marks_mutex_;
  std::vector<cudaEvent_t> marks_;
  std::exception_ptr mark_failure_;  ///< the first failure
  std::vector<Wait> waits_;          ///< since the last take_exposed_ns
  PinnedPool pool_;
  std::optional<Error> host_refusal_, stream_refusal_;
  bool fallback_noted_ = false;
};

}  // namespace offprof

#pragma once

#include <c10/cuda/CUDAStream.h>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/allocation_books.h"
#include "engine/cuda/cuda_queues.h"
#include "engine/cuda/event_pool.h"
#include "engine/cuda/pinned_pool.h"
#include "engine/device.h"

namespace offprof {

/// An NVIDIA GPU, through LibTorch and the CUDA runtime: tensors in PyTorch's caching allocator, compute on
/// the default stream, one stream per copy direction, host memory pinned. Streams wait for each other by
/// events alone; nothing blocks the host but synchronize and what is documented to wait.
///
/// Blocks are handed out and come back on the compute stream only. A copy waits for an event of that stream,
/// so a block for a reload may have been in any use there before; and a block comes back after the compute
/// stream has waited for its copies. So no block needs recordStream. A program that computes on other streams
/// is refused: see check_compute_stream.
///
/// The calling thread may have another device as its current one.
class CudaDevice : public Device {
 public:
  /// Throws Error (environment) where CUDA does not work here.
  explicit CudaDevice(c10::DeviceIndex index);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  c10::Device torch_device() const override { return {c10::kCUDA, index_}; }
  std::string description() const override;
  std::optional<Bytes> memory_bytes() const override { return total_bytes_; }

  std::optional<AllocationId> allocation_of(const c10::Storage& storage) const override {
    return books_.id_of(storage);
  }
  AllocationId next_allocation() const override { return books_.next_id(); }
  c10::Storage allocate(Bytes bytes) override;
  Bytes live_bytes() const override { return books_.live_bytes(); }
  Bytes peak_bytes() const override { return books_.peak_bytes(); }
  void reset_peak() override;
  /// Of what the caching allocator takes from the device, as PyTorch's memory fraction is. A smaller fraction
  /// in the allocator's settings holds as well.
  void set_capacity(std::optional<Bytes> bytes) override;
  std::optional<OutOfMemory> take_out_of_memory() override { return books_.take_out_of_memory(); }
  void set_listener(AllocationListener* listener) override { books_.set_listener(listener); }

  std::optional<CacheUse> cache_use() const override;
  void release_cache() override;
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
  /// From one recorded event to another, the device being idle.
  virtual Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) const;
  /// What gathering for the copy last asked for took.
  void note_staging(CopyQueue which, const Work& staging) { queue(which).copies.back().staging = staging; }
  cudaStream_t stream_of(CopyQueue which) { return queue(which).stream.stream(); }
  /// An event, and what its time is on this device's clock.
  cudaEvent_t origin() const { return origin_; }
  Nanoseconds origin_ns() const { return origin_ns_; }
  /// In the place of one that was there; the device must be idle.
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
    Event taken = 0;           ///< copies before those
    Event waited = 0;          ///< the compute stream has waited for all up to here
  };

  /// The compute stream waits for a copy.
  struct Wait {
    cudaEvent_t copy_end = nullptr;
    cudaEvent_t before = nullptr, after = nullptr;  ///< around it, on the compute stream
  };

  Queue& queue(CopyQueue which) { return queues_[static_cast<std::size_t>(which)]; }
  /// What the queue is given from here on comes after what the compute stream was given so far.
  void follow_compute(Queue& queue);
  Event add_copy(Queue& queue, const CopyRequest& request);
  Nanoseconds since_origin(cudaEvent_t event) const { return origin_ns_ + elapsed(origin_, event); }

  c10::DeviceIndex index_;
  Bytes total_bytes_ = 0;
  AllocationBooks& books_;
  double own_fraction_;  ///< of memory, by the allocator's settings; 1: no limit
  cudaStream_t compute_;
  std::array<Queue, 2> queues_;
  CudaQueues disk_queues_;
  std::unique_ptr<DeviceDisk> disk_;
  cudaEvent_t compute_event_ =
      nullptr;  ///< recorded anew for every wait: a wait keeps the point it was given
  EventPool events_;
  cudaEvent_t origin_ = nullptr;  ///< its time is origin_ns_; the others' count from it
  Nanoseconds origin_ns_ = 0;
  Nanoseconds origin_steady_ns_ = 0;  ///< the same moment on the host's clock, within microseconds
  std::mutex marks_mutex_;
  std::vector<cudaEvent_t> marks_;
  std::exception_ptr mark_failure_;  ///< the first
  std::vector<Wait> waits_;          ///< since the last take_exposed_ns
  PinnedPool pool_;
  std::optional<Error> host_refusal_, stream_refusal_;
  bool fallback_noted_ = false;
};

}  // namespace offprof

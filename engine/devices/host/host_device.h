#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "engine/copies/copy_stream.h"
#include "engine/copies/host_pool.h"
#include "engine/devices/device.h"
#include "engine/devices/host/counted_allocator.h"
#include "engine/devices/host/host_queues.h"
#include "traces/model/link.h"

namespace offprof {

/// Device for machines without a GPU. Tensors live in LibTorch's CPU memory, which is counted. Each copy
/// direction has a thread with an optional cap, so copies really overlap with compute and all measurements
/// are real.
class HostDevice final : public Device {
 public:
  /// `allocator` must be the one that CountedAllocator::install put in place. A direction of `link_cap` with
  /// bytes_per_second 0 is not capped.
  HostDevice(CountedAllocator& allocator, const Link& link_cap);

  c10::Device torch_device() const override { return c10::Device(c10::kCPU); }
  std::string description() const override;

  void prepare_cores(int compute_threads) override;

  std::optional<AllocationId> allocation_of(const c10::Storage& storage) const override {
    return allocator_.id_of(storage);
  }
  AllocationId next_allocation() const override { return allocator_.next_id(); }
  c10::Storage allocate(Bytes bytes) override;
  Bytes live_bytes() const override { return allocator_.live_bytes(); }
  Bytes peak_bytes() const override { return allocator_.peak_bytes(); }
  void reset_peak() override { allocator_.reset_peak(); }
  void set_capacity(std::optional<Bytes> bytes) override { allocator_.set_capacity(bytes); }
  std::optional<OutOfMemory> take_out_of_memory() override { return allocator_.take_out_of_memory(); }
  void set_listener(AllocationListener* listener) override { allocator_.set_listener(listener); }

  std::optional<Nanoseconds> core_to_core_ns() override;

  std::byte* allocate_host(Bytes bytes) override;
  void free_host(std::byte* buffer, Bytes bytes) override { pool_.free(buffer, bytes); }
  void set_host_capacity(std::optional<Bytes> bytes) override;
  std::optional<Error> take_host_refusal() override { return std::exchange(host_refusal_, std::nullopt); }
  /// Returns the bytes that offloaded tensors use now.
  Bytes host_used_bytes() const { return pool_.used_bytes(); }

  Event copy(CopyQueue queue, const CopyRequest& request) override;
  Event copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to, std::int64_t tag) override;
  void wait(CopyQueue queue, Event event) override;
  std::vector<CopyRecord> take_copy_records() override;
  void open_disk(const DiskRequest& request) override;
  DeviceDisk* disk() override { return disk_.get(); }
  TimeMark mark() noexcept override { return steady_now(); }
  void synchronize() override;
  Nanoseconds time_of(TimeMark mark) const override { return mark; }
  Nanoseconds take_exposed_ns() override { return std::exchange(exposed_ns_, 0); }

 private:
  CopyStream& stream(CopyQueue queue) { return queue == CopyQueue::kD2h ? d2h_ : h2d_; }

  CountedAllocator& allocator_;
  HostPool pool_;
  std::optional<Error> host_refusal_;
  std::unique_ptr<DeviceDisk> disk_;  ///< declared before the streams, whose threads use it
  CopyStream d2h_;
  CopyStream h2d_;
  bool copies_have_a_core_ = false;
  Nanoseconds exposed_ns_ = 0;
  HostQueues queues_{d2h_, h2d_, exposed_ns_};
};

}  // namespace offprof

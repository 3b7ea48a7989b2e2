#pragma once

#include "engine/devices/device.h"

namespace offprof {

/// Passes every call on to a device. Base of devices that misbehave on purpose.
class DeviceWrapper : public Device {
 public:
  explicit DeviceWrapper(Device& inner) : inner_(inner) {}

  c10::Device torch_device() const override { return inner_.torch_device(); }
  std::string description() const override { return inner_.description(); }
  bool is_virtual() const override { return inner_.is_virtual(); }
  std::optional<Bytes> memory_bytes() const override { return inner_.memory_bytes(); }
  std::optional<Error> take_model_refusal() override { return inner_.take_model_refusal(); }
  std::vector<std::string> take_notes() override { return inner_.take_notes(); }

  std::optional<AllocationId> allocation_of(const c10::Storage& storage) const override {
    return inner_.allocation_of(storage);
  }
  AllocationId next_allocation() const override { return inner_.next_allocation(); }
  c10::Storage allocate(Bytes bytes) override { return inner_.allocate(bytes); }
  Bytes live_bytes() const override { return inner_.live_bytes(); }
  Bytes peak_bytes() const override { return inner_.peak_bytes(); }
  void reset_peak() override { inner_.reset_peak(); }
  void set_capacity(std::optional<Bytes> bytes) override { inner_.set_capacity(bytes); }
  std::optional<OutOfMemory> take_out_of_memory() override { return inner_.take_out_of_memory(); }
  void set_listener(AllocationListener* listener) override { inner_.set_listener(listener); }

  std::optional<CacheUse> cache_use() const override { return inner_.cache_use(); }
  void release_cache() override { inner_.release_cache(); }
  void finish_frees() override { inner_.finish_frees(); }
  std::optional<AllocatorState> allocator_state(
      const std::function<std::int32_t(AllocationId)>& storage_of) const override {
    return inner_.allocator_state(storage_of);
  }

  std::byte* allocate_host(Bytes bytes) override { return inner_.allocate_host(bytes); }
  void free_host(std::byte* buffer, Bytes bytes) override { inner_.free_host(buffer, bytes); }
  void set_host_capacity(std::optional<Bytes> bytes) override { inner_.set_host_capacity(bytes); }
  std::optional<Bytes> host_reserved_bytes() const override { return inner_.host_reserved_bytes(); }
  Bytes trim_host() override { return inner_.trim_host(); }
  std::optional<Error> take_host_refusal() override { return inner_.take_host_refusal(); }

  void check_compute_stream() override { inner_.check_compute_stream(); }
  bool is_of_other_stream(const c10::Storage& storage) const override {
    return inner_.is_of_other_stream(storage);
  }
  void check_stream_of(const c10::Storage& storage) override { inner_.check_stream_of(storage); }
  std::optional<Error> take_stream_refusal() override { return inner_.take_stream_refusal(); }

  Event copy(CopyQueue queue, const CopyRequest& request) override { return inner_.copy(queue, request); }
  Event copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to, std::int64_t tag) override {
    return inner_.copy_out_densely(queue, from, to, tag);
  }
  void wait(CopyQueue queue, Event event) override { inner_.wait(queue, event); }
  std::vector<CopyRecord> take_copy_records() override { return inner_.take_copy_records(); }
  std::optional<Link> known_link() const override { return inner_.known_link(); }

  void open_disk(const DiskRequest& request) override { inner_.open_disk(request); }
  DeviceDisk* disk() override { return inner_.disk(); }

  TimeMark mark() noexcept override { return inner_.mark(); }
  std::exception_ptr take_mark_failure() override { return inner_.take_mark_failure(); }
  void synchronize() override { inner_.synchronize(); }
  Nanoseconds time_of(TimeMark mark) const override { return inner_.time_of(mark); }
  std::optional<Work> take_work() override { return inner_.take_work(); }
  void note_stream_commands(bool noted) override { inner_.note_stream_commands(noted); }
  std::vector<StreamCommand> take_stream_commands() override { return inner_.take_stream_commands(); }
  void forget_marks() override { inner_.forget_marks(); }
  Nanoseconds take_exposed_ns() override { return inner_.take_exposed_ns(); }

 protected:
  Device& inner_;
};

}  // namespace offprof

#pragma once

#include <optional>
#include <string>

#include "tests/conformance/device_wrapper.h"
#include "tests/conformance/disk_wrapper.h"

namespace offprof {

/// Counts the host memory and disk space in use, because not every device reports them.
class CountingDevice : public DeviceWrapper {
 public:
  using DeviceWrapper::DeviceWrapper;

  std::byte* allocate_host(Bytes bytes) override {
    std::byte* const memory = DeviceWrapper::allocate_host(bytes);
    host_bytes_ += bytes;
    return memory;
  }
  void free_host(std::byte* buffer, Bytes bytes) override {
    host_bytes_ -= bytes;
    DeviceWrapper::free_host(buffer, bytes);
  }
  Bytes host_bytes() const { return host_bytes_; }

  void open_disk(const DiskRequest& request) override {
    disk_.reset();
    DeviceWrapper::open_disk(request);
  }
  DeviceDisk* disk() override {
    if (!disk_ && DeviceWrapper::disk() != nullptr) disk_.emplace(*DeviceWrapper::disk(), disk_bytes_);
    return disk_ ? &*disk_ : nullptr;
  }
  Bytes disk_bytes() const { return disk_bytes_; }

 private:
  class CountingDisk final : public DiskWrapper {
   public:
    CountingDisk(DeviceDisk& inner, Bytes& out) : DiskWrapper(inner), out_(out) {}
    std::optional<Extent> reserve(Bytes bytes, std::string* why_not) override {
      const std::optional<Extent> extent = DiskWrapper::reserve(bytes, why_not);
      if (extent) out_ += extent->bytes;
      return extent;
    }
    void release(const Extent& extent) override {
      out_ -= extent.bytes;
      DiskWrapper::release(extent);
    }

   private:
    Bytes& out_;
  };

  Bytes host_bytes_ = 0, disk_bytes_ = 0;
  std::optional<CountingDisk> disk_;
};

}  // namespace offprof

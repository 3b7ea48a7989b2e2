#pragma once

#include "tests/conformance/device_wrapper.h"

namespace offprof {

/// Counts the host memory that is out, of which devices do not all tell.
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

 private:
  Bytes host_bytes_ = 0;
};

}  // namespace offprof

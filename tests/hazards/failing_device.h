#pragma once

#include <stdexcept>
#include <string>

#include "tests/hazards/counting_device.h"

namespace offprof {

/// Throws in the n-th call of those that can fail, instead of making it; every other call is the device's.
class FailingDevice final : public CountingDevice {
 public:
  using CountingDevice::CountingDevice;

  static constexpr const char* kMessage = "planted failure of ";

  /// Counted from 1, from here on; 0: none.
  void fail_at(int call) {
    left_ = call;
    has_failed_ = false;
  }
  bool has_failed() const { return has_failed_; }

  c10::Storage allocate(Bytes bytes) override {
    if (bytes > 0) pass("an allocation");
    return CountingDevice::allocate(bytes);
  }
  std::byte* allocate_host(Bytes bytes) override {
    pass("an allocation of host memory");
    return CountingDevice::allocate_host(bytes);
  }
  Event copy(CopyQueue queue, const CopyRequest& request) override {
    pass("a copy");
    return CountingDevice::copy(queue, request);
  }
  Event copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to, std::int64_t tag) override {
    pass("a dense copy");
    return CountingDevice::copy_out_densely(queue, from, to, tag);
  }
  void wait(CopyQueue queue, Event event) override {
    pass("a wait");
    CountingDevice::wait(queue, event);
  }

 private:
  void pass(const char* what) {
    if (left_ == 0 || --left_ > 0) return;
    has_failed_ = true;
    throw std::runtime_error(std::string(kMessage) + what);
  }

  int left_ = 0;
  bool has_failed_ = false;
};

}  // namespace offprof

#pragma once

#include <stdexcept>
#include <string>

#include "tests/hazards/counting_device.h"

namespace offprof {

/// A device of whose calls some fail; every other call is the device's.
class FaultyDevice : public CountingDevice {
 public:
  using CountingDevice::CountingDevice;

  /// The call that fails, of those that can, counted from 1, from here on; 0: none. `and_all_after_it`: they
  /// fail too.
  void fail_at(int call, bool and_all_after_it = false) {
    left_ = call;
    goes_on_ = and_all_after_it;
    has_failed_ = false;
  }
  bool has_failed() const { return has_failed_; }

 protected:
  /// Whether this call, of those that can, fails.
  bool goes_on() const { return goes_on_; }
  bool is_due() {
    const bool due = left_ == 0 ? has_failed_ && goes_on_ : --left_ == 0;
    has_failed_ = has_failed_ || due;
    return due;
  }

 private:
  int left_ = 0;
  bool goes_on_ = false;
  bool has_failed_ = false;
};

/// Throws in the n-th call instead of making it; with all after it, it is a device that is lost.
class FailingDevice final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;

  static constexpr const char* kMessage = "planted failure of ";

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
    // A device that is lost has ended its copies, in one way or another.
    if (goes_on()) CountingDevice::wait(queue, event);
    pass("a wait");
    if (!goes_on()) CountingDevice::wait(queue, event);
  }

 private:
  void pass(const char* what) {
    if (is_due()) throw std::runtime_error(std::string(kMessage) + what);
  }
};

/// Has no memory for the engine's n-th request, with the error of the device itself.
class RefusingDevice final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;

  c10::Storage allocate(Bytes bytes) override {
    if (bytes == 0 || !is_due()) return CountingDevice::allocate(bytes);
    // More than any device has, or what is cached of it.
    constexpr Bytes kTooMuch = 1024 * 1024 * kGiB;
    set_capacity(live_bytes() + bytes);
    try {
      CountingDevice::allocate(kTooMuch);
    } catch (...) {
      set_capacity(std::nullopt);
      throw;
    }
    throw std::logic_error("the device has a pebibyte");
  }
};

}  // namespace offprof

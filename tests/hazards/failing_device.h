#pragma once

#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/hazards/counting_device.h"

namespace offprof {

inline constexpr const char* kPlantedFailure = "planted failure of ";

/// Device with some failing calls; all other calls go to the wrapped device.
class FaultyDevice : public CountingDevice {
 public:
  using CountingDevice::CountingDevice;

  /// Sets which of the later fallible calls fails, counted from 1; 0: none. `and_all_after_it`: all later
  /// ones fail too.
  void fail_at(int call, bool and_all_after_it = false) {
    left_ = call;
    goes_on_ = and_all_after_it;
    has_failed_ = false;
  }
  bool has_failed() const { return has_failed_; }

  /// Resets the count of fallible calls.
  void count_calls() { calls_ = 0; }
  int calls() const { return calls_; }

  /// While an object of this class lives, no call fails or is counted.
  class Pause {
   public:
    explicit Pause(FaultyDevice& device) : device_(device) { ++device_.pauses_; }
    ~Pause() { --device_.pauses_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    FaultyDevice& device_;
  };

 protected:
  /// True if all calls after the failed one fail too.
  bool goes_on() const { return goes_on_; }
  bool is_due() {
    const std::lock_guard turn(mutex_);
    if (pauses_ > 0) return false;
    ++calls_;
    const bool due = left_ == 0 ? has_failed_ && goes_on_ : --left_ == 0;
    has_failed_ = has_failed_ || due;
    return due;
  }

 private:
  std::mutex mutex_;  ///< several threads may set marks
  int left_ = 0, pauses_ = 0, calls_ = 0;
  bool goes_on_ = false;
  bool has_failed_ = false;
};

/// First failure of a device's marks.
class MarkFailure {
 public:
  void keep(const char* what) noexcept {
    const std::lock_guard turn(mutex_);
    if (!failure_)
      failure_ = std::make_exception_ptr(std::runtime_error(std::string(kPlantedFailure) + what));
  }
  std::exception_ptr take() {
    const std::lock_guard turn(mutex_);
    return std::exchange(failure_, nullptr);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
};

/// Throws in the n-th call instead of making it. If all later calls fail too, it stands for a lost device,
/// and its marks fail as well.
class FailingDevice final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;

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
    // A lost device has ended its copies, in one way or another.
    if (goes_on()) CountingDevice::wait(queue, event);
    pass("a wait");
    if (!goes_on()) CountingDevice::wait(queue, event);
  }
  DeviceDisk* disk() override {
    if (!disk_ && CountingDevice::disk() != nullptr) disk_.emplace(*CountingDevice::disk(), *this);
    return disk_ ? &*disk_ : nullptr;
  }
  TimeMark mark() noexcept override {
    if (!goes_on() || !has_failed()) return CountingDevice::mark();
    failure_.keep("a mark");
    return kFailedMark;
  }
  std::exception_ptr take_mark_failure() override { return failure_.take(); }
  void forget_marks() override {
    failure_.take();
    CountingDevice::forget_marks();
  }

 private:
  class FailingDisk final : public DiskWrapper {
   public:
    FailingDisk(DeviceDisk& inner, FailingDevice& device) : DiskWrapper(inner), device_(device) {}
    std::optional<Extent> reserve(Bytes bytes, std::string* why_not) override {
      device_.pass("space on the disk");
      return DiskWrapper::reserve(bytes, why_not);
    }
    Transfer write(const Extent& extent, const std::byte* from, Bytes bytes, CopyQueue queue,
                   std::int64_t tag) override {
      device_.pass("a write to the disk");
      return DiskWrapper::write(extent, from, bytes, queue, tag);
    }
    Transfer read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) override {
      device_.pass("a read from the disk");
      return DiskWrapper::read(extent, to, bytes, tag);
    }
    void hold(CopyQueue queue, const Transfer& read) override {
      device_.pass("a queue that waits for the disk");
      DiskWrapper::hold(queue, read);
    }
    void wait(const Transfer& transfer) override {
      DiskWrapper::wait(transfer);  // a failed transfer has ended too
      device_.pass("a wait for the disk");
    }
    bool check(const Transfer& read) override {
      const bool is_over = DiskWrapper::check(read);
      device_.pass("what was read from the disk");
      return is_over;
    }

   private:
    FailingDevice& device_;
  };

  void pass(const char* what) {
    if (is_due()) throw std::runtime_error(std::string(kPlantedFailure) + what);
  }

  std::optional<FailingDisk> disk_;
  MarkFailure failure_;
};

/// Fails in the n-th mark, and in all later ones if asked to.
class MarkFailingDevice final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;

  TimeMark mark() noexcept override {
    if (!is_due()) return CountingDevice::mark();
    failure_.keep("a mark");
    return kFailedMark;
  }
  std::exception_ptr take_mark_failure() override { return failure_.take(); }
  void forget_marks() override {
    failure_.take();
    CountingDevice::forget_marks();
  }

 private:
  MarkFailure failure_;
};

/// Has a full disk when the n-th copy asks for space.
class FullDiskDevice final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;

  DeviceDisk* disk() override {
    if (!disk_ && CountingDevice::disk() != nullptr) disk_.emplace(*CountingDevice::disk(), *this);
    return disk_ ? &*disk_ : nullptr;
  }

 private:
  class FullDisk final : public DiskWrapper {
   public:
    FullDisk(DeviceDisk& inner, FullDiskDevice& device) : DiskWrapper(inner), device_(device) {}
    std::optional<Extent> reserve(Bytes bytes, std::string* why_not) override {
      return device_.is_due() ? std::nullopt : DiskWrapper::reserve(bytes, why_not);
    }

   private:
    FullDiskDevice& device_;
  };

  std::optional<FullDisk> disk_;
};

/// Loses the n-th copy; waiting for that copy throws. Needs a device whose memory the processor can access.
class LosingDevice final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;

  static constexpr const char* kMessage = "planted loss of a copy";

  Event copy(CopyQueue queue, const CopyRequest& request) override {
    if (request.bytes == 0 || !is_due()) return CountingDevice::copy(queue, request);
    std::memset(request.to, 0x5a, static_cast<std::size_t>(request.bytes));
    CopyRequest nothing = request;
    nothing.bytes = 0;
    const Event event = CountingDevice::copy(queue, nothing);
    lost_.emplace(queue, event);
    return event;
  }
  void wait(CopyQueue queue, Event event) override {
    CountingDevice::wait(queue, event);
    if (lost_.contains({queue, event})) throw std::runtime_error(kMessage);
  }

 private:
  std::set<std::pair<CopyQueue, Event>> lost_;
};

/// Has no memory for the engine's n-th request and throws the device's own error.
class RefusingDevice final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;

  c10::Storage allocate(Bytes bytes) override {
    if (bytes == 0 || !is_due()) return CountingDevice::allocate(bytes);
    // More than any device has, including its cache.
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

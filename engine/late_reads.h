#pragma once

#include <exception>
#include <utility>
#include <vector>

#include "engine/device_disk.h"

namespace offprof {

/// Nothing of the transfer is under way when it returns, whatever became of it.
inline void settle(DeviceDisk& disk, const DeviceDisk::Transfer& transfer) noexcept {
  try {
    disk.wait(transfer);
  } catch (...) {
    // It is over all the same, and the disk keeps what became of it.
  }
}

/// Reads for whose copies compute waits, and of which nobody knows yet whether they failed.
class LateReads {
 public:
  /// nullptr: there is no disk, and nothing is read. `disk` must outlive it.
  explicit LateReads(DeviceDisk* disk) : disk_(disk) {}
  ~LateReads() { settle(); }
  LateReads(const LateReads&) = delete;
  LateReads& operator=(const LateReads&) = delete;

  /// Throws where the read is over and failed. What is not over is told of by `finish`.
  void check(const DeviceDisk::Transfer& read) {
    if (!disk_->check(read)) reads_.push_back(read);
  }

  /// Waits for all of them; throws the first failure.
  void finish() {
    std::exception_ptr failure;
    for (const DeviceDisk::Transfer& read : std::exchange(reads_, {})) {
      try {
        disk_->wait(read);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  /// Waits for all of them, whatever became of them.
  void settle() noexcept {
    for (const DeviceDisk::Transfer& read : reads_) offprof::settle(*disk_, read);
    reads_.clear();
  }

 private:
  DeviceDisk* disk_;
  std::vector<DeviceDisk::Transfer> reads_;
};

}  // namespace offprof

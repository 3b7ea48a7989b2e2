#pragma once

#include <exception>
#include <utility>
#include <vector>

#include "engine/devices/disk/device_disk.h"

namespace offprof {

/// Waits until the transfer is no longer in progress, whether it succeeded or failed.
inline void settle(DeviceDisk& disk, const DeviceDisk::Transfer& transfer) noexcept {
  try {
    disk.wait(transfer);
  } catch (...) {
    // The transfer is over in any case, and the disk keeps its failure.
  }
}

/// Reads whose copies compute waits for, and whose success is not known yet.
class LateReads {
 public:
  /// `disk` must outlive this object. nullptr: there is no disk, and nothing is read.
  explicit LateReads(DeviceDisk* disk) : disk_(disk) {}
  ~LateReads() { settle(); }
  LateReads(const LateReads&) = delete;
  LateReads& operator=(const LateReads&) = delete;

  /// Throws if the read is complete and failed. If it is not complete, `finish` reports its failure.
  void check(const DeviceDisk::Transfer& read) {
    if (!disk_->check(read)) reads_.push_back(read);
  }

  /// Waits for all of them and throws the first failure.
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

  /// Waits for all of them, ignoring failures.
  void settle() noexcept {
    for (const DeviceDisk::Transfer& read : reads_) offprof::settle(*disk_, read);
    reads_.clear();
  }

 private:
  DeviceDisk* disk_;
  std::vector<DeviceDisk::Transfer> reads_;
};

}  // namespace offprof

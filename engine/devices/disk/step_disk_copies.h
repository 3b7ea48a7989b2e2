#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/devices/disk/device_disk.h"
#include "engine/devices/disk/late_reads.h"
#include "engine/scheduler/command.h"
#include "traces/base/units.h"

namespace offprof {

/// The disk part of a step's copies. The caller owns the host memory and must keep it as DeviceDisk requires.
class StepDiskCopies {
 public:
  /// `disk` must outlive this object. nullptr: there is no disk, and no disk command may be executed.
  explicit StepDiskCopies(DeviceDisk* disk) : disk_(disk), late_reads_(disk) {}
  /// Frees the remaining disk space. Every copy must be settled, or be one that compute waits for.
  ~StepDiskCopies();
  StepDiskCopies(const StepDiskCopies&) = delete;
  StepDiskCopies& operator=(const StepDiskCopies&) = delete;

  /// Takes the space. Returns false if the disk is full. Throws Error (input) if there is no disk.
  bool take(const TakeDisk& command);
  /// Starts the write, after all that the queue was given so far.
  void write(const WriteDisk& command, const std::byte* from, CopyQueue queue);
  /// Starts the read.
  void read(const ReadDisk& command, std::byte* to);
  /// Lets the host wait for the copy's latest transfer.
  void wait(CopyId copy) { disk_->wait(at(copy).transfer); }
  /// Makes the CopyIn that is queued next start after the read, if there was one.
  void hold_for_read(CopyId copy, CopyQueue queue);
  /// Throws if the read failed. Call after compute waits for that CopyIn. If the read is not complete yet,
  /// `finish_reads` reports its failure; after `finish_reads`, this call waits for the read.
  void check_read(CopyId copy);
  /// Waits for the reads that `check_read` found incomplete. Throws if one failed.
  void finish_reads();
  /// Frees the space.
  void free(const FreeDisk& command);
  /// Waits until no transfer of the copy is in progress, ignoring failures.
  void settle(CopyId copy) noexcept;

  int refusals() const { return refusals_; }  ///< TakeDisk commands that the disk refused
  Bytes peak_bytes() const { return peak_bytes_; }
  Bytes write_bytes() const { return write_bytes_; }
  Bytes read_bytes() const { return read_bytes_; }

 private:
  struct Copy {
    std::optional<Extent> extent;
    DeviceDisk::Transfer transfer;  ///< the latest one
    bool was_read = false;          ///< `transfer` is a read
  };

  Copy& at(CopyId copy) { return copies_[static_cast<std::size_t>(copy)]; }
  bool knows(CopyId copy) const { return static_cast<std::size_t>(copy) < copies_.size(); }

  DeviceDisk* disk_;
  std::vector<Copy> copies_;  ///< by CopyId; empty for copies that are not on the disk
  LateReads late_reads_;
  bool reads_are_finished_ = false;
  int refusals_ = 0;
  Bytes used_bytes_ = 0, peak_bytes_ = 0;
  Bytes write_bytes_ = 0, read_bytes_ = 0;
};

}  // namespace offprof

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/device_disk.h"
#include "engine/late_reads.h"
#include "engine/schedule/scheduler.h"
#include "traces/units.h"

namespace offprof {

/// What of a step's copies is on the disk. Host memory is the caller's, who must keep it as DeviceDisk says.
class DiskCopies {
 public:
  /// nullptr: there is none, and nothing may be asked for. `disk` must outlive it.
  explicit DiskCopies(DeviceDisk* disk) : disk_(disk), late_reads_(disk) {}
  /// Gives back what space is left. Every copy must be settled, or be one for which compute waits.
  ~DiskCopies();
  DiskCopies(const DiskCopies&) = delete;
  DiskCopies& operator=(const DiskCopies&) = delete;

  /// kTakeDisk. False: the disk is full. Throws Error (input) where there is no disk.
  bool take(const Command& command);
  /// kWriteDisk, after what the queue was given so far.
  void write(const Command& command, const std::byte* from, CopyQueue queue);
  /// kReadDisk.
  void read(const Command& command, std::byte* to);
  /// kWaitWrite, kWaitRead.
  void wait(CopyId copy) { disk_->wait(at(copy).transfer); }
  /// A kCopyIn is queued next: it begins after the read, where there was one.
  void hold_for_read(CopyId copy, CopyQueue queue);
  /// That kCopyIn has been waited for: throws where the read failed. One that is not over then is told of by
  /// `finish_reads`; after that it is waited for here.
  void check_read(CopyId copy);
  /// Waits for what `check_read` found under way: throws where a read failed.
  void finish_reads();
  /// kFreeDisk.
  void free(const Command& command);
  /// Nothing of the copy is under way when it returns, whatever has failed.
  void settle(CopyId copy) noexcept;

  int refusals() const { return refusals_; }  ///< by the disk, of kTakeDisk
  Bytes peak_bytes() const { return peak_bytes_; }
  Bytes write_bytes() const { return write_bytes_; }
  Bytes read_bytes() const { return read_bytes_; }

 private:
  struct Copy {
    std::optional<Extent> extent;
    DeviceDisk::Transfer transfer;  ///< the last
    bool was_read = false;          ///< it is a read
  };

  Copy& at(CopyId copy) { return copies_[static_cast<std::size_t>(copy)]; }
  bool knows(CopyId copy) const { return static_cast<std::size_t>(copy) < copies_.size(); }

  DeviceDisk* disk_;
  std::vector<Copy> copies_;  ///< by CopyId; those of copies that are elsewhere are empty
  LateReads late_reads_;
  bool reads_are_finished_ = false;
  int refusals_ = 0;
  Bytes used_bytes_ = 0, peak_bytes_ = 0;
  Bytes write_bytes_ = 0, read_bytes_ = 0;
};

}  // namespace offprof

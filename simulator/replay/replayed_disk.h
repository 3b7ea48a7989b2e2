#pragma once

#include <algorithm>
#include <vector>

#include "engine/scheduler/command.h"
#include "simulator/clock/virtual_clock.h"
#include "traces/base/units.h"

namespace offprof {

/// The disk as a replay's copies use it: space, bytes, and each copy's last transfer. It is never full. Of
/// parameters only the written and read bytes are counted.
class ReplayedDisk {
 public:
  void take(const TakeDisk& command) {
    used_bytes_ += command.bytes;
    peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  }
  void free(const FreeDisk& command) { used_bytes_ -= command.bytes; }

  /// Writes after the copy out, which ends at `copied_out`.
  const VirtualClock::Copy& write(const WriteDisk& command, Nanoseconds copied_out, VirtualClock& clock) {
    write_bytes_ += command.bytes;
    return note(command, clock.write_disk(command.bytes, copied_out));
  }
  const VirtualClock::Copy& read(const ReadDisk& command, VirtualClock& clock) {
    read_bytes_ += command.bytes;
    return note(command, clock.read_disk(command.bytes));
  }

  /// Parameters have space of their own on the disk, beside that of copies.
  VirtualClock::Copy write_weights(Bytes bytes, Nanoseconds copied_out, VirtualClock& clock) {
    write_bytes_ += bytes;
    return clock.write_disk(bytes, copied_out);
  }
  VirtualClock::Copy read_weights(Bytes bytes, VirtualClock& clock) {
    read_bytes_ += bytes;
    return clock.read_disk(bytes);
  }

  /// Returns when the copy's last read is done; 0 if its last transfer was not a read.
  Nanoseconds ready(CopyId copy) const {
    const VirtualClock::Copy* const last = find(copy);
    return last != nullptr && last->track == Track::kDiskRead ? last->end : 0;
  }
  const VirtualClock::Copy& last(CopyId copy) const { return transfers_[copy]; }

  bool is_used() const { return peak_bytes_ > 0 || write_bytes_ > 0 || read_bytes_ > 0; }
  Bytes peak_bytes() const { return peak_bytes_; }
  Bytes write_bytes() const { return write_bytes_; }
  Bytes read_bytes() const { return read_bytes_; }

 private:
  const VirtualClock::Copy* find(CopyId copy) const {
    return static_cast<std::size_t>(copy) < transfers_.size() ? &transfers_[copy] : nullptr;
  }
  const VirtualClock::Copy& note(const CopyCommand& command, const VirtualClock::Copy& transfer) {
    const std::size_t needed = static_cast<std::size_t>(command.copy) + 1;
    if (transfers_.size() < needed) transfers_.resize(needed);
    return transfers_[command.copy] = transfer;
  }

  std::vector<VirtualClock::Copy> transfers_;  ///< by copy; meaningless for copies without transfers
  Bytes used_bytes_ = 0, peak_bytes_ = 0;
  Bytes write_bytes_ = 0, read_bytes_ = 0;
};

}  // namespace offprof

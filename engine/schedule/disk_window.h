#pragma once

#include <vector>

#include "engine/schedule/scheduler.h"
#include "traces/units.h"

namespace offprof {

/// The host memory by way of which copies go to a disk and come back: at most so many bytes of it, and
/// one copy more where that is needed now and nothing can go for it. A value: it knows nothing of the
/// executor but in a call.
///
/// Forward: a new copy takes a buffer, and keeps it while it is written and beyond. Where the next would not
/// fit, others are waited for and let go of; what backward needs latest goes first. So memory does not depend
/// on how fast the disk is, and what is needed first is likely to be there still.
///
/// Backward: what is not there is read, ahead of need where no other that is needed must go for it.
class DiskWindow {
 public:
  explicit DiskWindow(Bytes most_bytes) : most_bytes_(most_bytes) {}

  /// Lets go of buffers until `bytes` fit, or nothing is left that can be let go of.
  void make_room(Bytes bytes, Executor& executor);
  /// `copy_out` has taken the buffer of a new copy: it is written now.
  void write(const Command& copy_out, Executor& executor);
  /// Reads the copy where it is not in host memory. `copy`: its tensor, number and bytes.
  void bring(const Command& copy, Executor& executor);
  /// Likewise, but only if no other that is needed must go, and what is there is no more than may be; false:
  /// it would have to, or it is.
  bool bring_ahead(const Command& copy, Executor& executor);

  bool is_on_host(CopyId copy) const { return find(copy) != nullptr; }
  /// A copy in out of its buffer has begun: the buffer stays.
  void hold(CopyId copy);
  /// The program has waited for that copy in.
  void came_in(CopyId copy, Executor& executor);
  /// Backward has found it on the device: its buffer is the first to go.
  void set_unneeded(CopyId copy);
  /// Waits for what is under way and gives its buffer back, if it has one.
  void free(CopyId copy, Executor& executor);

 private:
  enum class Transfer : std::uint8_t { kNone, kWrite, kRead };
  struct Buffer {
    Command copy;  ///< tensor, number and bytes
    Transfer pending = Transfer::kNone;
    bool was_read = false;
    bool is_held = false;  ///< a copy in reads it
    bool is_needed = true;
  };
  using Iterator = std::vector<Buffer>::iterator;

  const Buffer* find(CopyId copy) const;
  Buffer* find(CopyId copy);
  bool has_room(Bytes bytes) const { return bytes <= most_bytes_ - held_bytes_; }
  Iterator first_unneeded();
  Iterator needed_latest();
  void add(const Command& copy, Transfer pending);
  void read(const Command& copy, Executor& executor);
  void let_go(Iterator buffer, Executor& executor);

  Bytes most_bytes_;  ///< more only where one copy needs it now
  Bytes held_bytes_ = 0;
  std::vector<Buffer> buffers_;  ///< in the order in which they were taken
};

}  // namespace offprof

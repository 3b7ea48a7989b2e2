#pragma once

#include <vector>

#include "engine/scheduler/scheduler.h"
#include "traces/base/units.h"

namespace offprof {

/// Host memory that copies pass through on the way to the disk and back. It uses at most `most_bytes`, and
/// one copy more if that copy is needed now and no buffer can be freed for it. It is a value type: it uses
/// the executor only during a call.
///
/// Forward: a new copy takes a buffer and keeps it during the write and after it. If the next copy would not
/// fit, the window waits for other buffers and frees them; the copy that backward needs latest goes first. So
/// memory use does not depend on the speed of the disk, and what backward needs first is likely to be in
/// memory still.
///
/// Backward: a copy that is not in memory is read. It is read ahead of need if no copy that is still needed
/// must go for it.
class DiskWindow {
 public:
  explicit DiskWindow(Bytes most_bytes) : most_bytes_(most_bytes) {}

  /// Frees buffers until `bytes` fit, or until no buffer can be freed.
  void make_room(Bytes bytes, Executor& executor);
  /// Starts the write of a new copy. The copy out has taken the copy's buffer.
  void write(const CopyCommand& copy, Executor& executor);
  /// Reads the copy unless it is in host memory.
  void bring(const CopyCommand& copy, Executor& executor);
  /// Like bring, but returns false and does not read if a copy that is still needed would have to go, or if
  /// the window holds more than its limit.
  bool bring_ahead(const CopyCommand& copy, Executor& executor);

  bool is_on_host(CopyId copy) const { return find(copy) != nullptr; }
  /// Keeps the buffer: a copy in from it has begun.
  void hold(CopyId copy);
  /// Reports that the program has waited for that copy in.
  void came_in(CopyId copy, Executor& executor);
  /// Makes the buffer the first to be freed: backward has found the copy on the device.
  void set_unneeded(CopyId copy);
  /// Waits for a transfer in progress and frees the copy's buffer, if it has one.
  void free(CopyId copy, Executor& executor);

 private:
  enum class Transfer : std::uint8_t { kNone, kWrite, kRead };
  struct Buffer {
    CopyCommand copy;
    Transfer pending = Transfer::kNone;
    bool was_read = false;
    bool is_held = false;  ///< a copy in reads from it
    bool is_needed = true;
  };
  using Iterator = std::vector<Buffer>::iterator;

  const Buffer* find(CopyId copy) const;
  Buffer* find(CopyId copy);
  bool has_room(Bytes bytes) const { return bytes <= most_bytes_ - held_bytes_; }
  Iterator first_unneeded();
  Iterator needed_latest();
  void add(const CopyCommand& copy, Transfer pending);
  void read(const CopyCommand& copy, Executor& executor);
  void evict(Iterator buffer, Executor& executor);

  Bytes most_bytes_;  ///< exceeded only if one copy needs more now
  Bytes held_bytes_ = 0;
  std::vector<Buffer> buffers_;  ///< in the order in which they were taken
};

}  // namespace offprof

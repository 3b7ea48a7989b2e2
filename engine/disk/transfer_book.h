#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/disk/disk_tier.h"
#include "traces/error.h"

namespace offprof {

/// What lies in an extent. Whoever carries out a transfer of the extent owns it meanwhile.
struct ExtentContents {
  Bytes written_bytes = 0;
  std::vector<std::uint64_t> checksums;  ///< of the pieces written; empty without checksums
  std::optional<Error> failure;          ///< of the last write
};

/// A write or a read that somebody has asked for.
struct Transfer {
  DiskTier::Ticket ticket = 0;
  DiskDirection direction = DiskDirection::kWrite;
  Bytes offset = 0;  ///< of the extent, in the file
  std::byte* memory = nullptr;
  Bytes bytes = 0;
  std::int64_t tag = 0;
  std::vector<std::uint64_t> checksums;  ///< room for those of a write's pieces; empty without checksums
  // For who carries it out:
  ExtentContents* contents = nullptr;
  Nanoseconds begin_ns = 0;
  Bytes cut_bytes = 0;           ///< handed out as pieces so far
  int pieces_under_way = 0;      ///< handed out and not there
  std::optional<Error> failure;  ///< the first
};

/// Keeps the order: who asked for what, what may begin, what has ended and how. Transfers of one extent begin
/// when the one before has ended. Any thread may call it; `begin_next` and `end` belong to the one that
/// carries them out.
class TransferBook {
 public:
  DiskTier::Ticket enqueue(Transfer transfer);
  /// The next in that direction; null: none may begin now. The book owns it.
  Transfer* begin_next(DiskDirection direction);
  /// `transfer` has ended and is no more.
  void end(Transfer* transfer);

  bool is_done(DiskTier::Ticket ticket) const;
  void wait(DiskTier::Ticket ticket) const;  ///< throws its failure
  std::vector<DiskRecord> take_records();
  /// Waits until nothing is under way in the extent at `offset`, and forgets what lies there.
  void forget(Bytes offset);

 private:
  struct ExtentQueue {
    ExtentContents contents;
    Bytes readable_bytes = 0;                       ///< when all that waits is done
    std::deque<std::unique_ptr<Transfer>> waiting;  ///< the first may begin, or has begun
  };

  std::deque<Transfer*>& ready(DiskDirection direction) {
    return ready_[direction == DiskDirection::kRead ? 1 : 0];
  }
  void keep_outcome(const Transfer& transfer);

  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  std::map<Bytes, ExtentQueue> extents_;            ///< by offset
  std::array<std::deque<Transfer*>, 2> ready_;      ///< the first of their extents, not begun
  std::unordered_set<DiskTier::Ticket> under_way_;  ///< asked for and not ended
  std::unordered_map<DiskTier::Ticket, Error> failures_;
  std::vector<DiskRecord> records_;
  DiskTier::Ticket last_ticket_ = 0;
};

}  // namespace offprof

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

#include "engine/storage/disk_tier.h"
#include "traces/base/error.h"

namespace offprof {

/// Contents of an extent. The thread that carries out a transfer of the extent owns them meanwhile.
struct ExtentContents {
  Bytes written_bytes = 0;
  std::vector<std::uint64_t> checksums;  ///< one per piece written; empty without checksums
  std::optional<Error> failure;          ///< error of the last write
};

/// Requested write or read.
struct Transfer {
  DiskTier::Ticket ticket = 0;
  DiskDirection direction = DiskDirection::kWrite;
  Bytes offset = 0;  ///< offset of the extent in the file
  std::byte* memory = nullptr;
  Bytes bytes = 0;
  std::int64_t tag = 0;
  /// Space for the checksums of a write's pieces; empty without checksums.
  std::vector<std::uint64_t> checksums;
  // For the thread that carries out the transfer:
  ExtentContents* contents = nullptr;
  Nanoseconds begin_ns = 0;
  Bytes cut_bytes = 0;           ///< handed out as pieces so far
  int pieces_under_way = 0;      ///< handed out and not complete
  std::optional<Error> failure;  ///< the first error
};

/// Keeps the order of transfers: which were requested, which may begin, which have ended and with what
/// result. Transfers of one extent begin when the previous one has ended. Any thread may call it, but
/// `begin_next` and `end` belong to the thread that carries out the transfers.
class TransferBook {
 public:
  DiskTier::Ticket enqueue(Transfer transfer);
  /// Returns the next transfer in that direction; null if none may begin now. The book owns it.
  Transfer* begin_next(DiskDirection direction);
  /// Records that `transfer` has ended, and destroys it.
  void end(Transfer* transfer);

  bool is_done(DiskTier::Ticket ticket) const;
  void wait(DiskTier::Ticket ticket) const;  ///< throws the transfer's error
  std::vector<DiskRecord> take_records();
  /// Waits until no transfer is in progress in the extent at `offset`, and forgets its contents.
  void forget(Bytes offset);

 private:
  struct ExtentQueue {
    ExtentContents contents;
    /// Bytes that a read may ask for when all waiting transfers are done.
    Bytes readable_bytes = 0;
    std::deque<std::unique_ptr<Transfer>> waiting;  ///< the first may begin, or has begun
  };

  std::deque<Transfer*>& ready(DiskDirection direction) {
    return ready_[direction == DiskDirection::kRead ? 1 : 0];
  }
  void keep_outcome(const Transfer& transfer);

  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  std::map<Bytes, ExtentQueue> extents_;            ///< by offset
  std::array<std::deque<Transfer*>, 2> ready_;      ///< the first transfer of each extent, not begun
  std::unordered_set<DiskTier::Ticket> under_way_;  ///< requested and not ended
  std::unordered_map<DiskTier::Ticket, Error> failures_;
  std::vector<DiskRecord> records_;
  DiskTier::Ticket last_ticket_ = 0;
};

}  // namespace offprof

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/copies/aligned_buffer.h"
#include "engine/storage/disk_queue.h"
#include "engine/storage/transfer_book.h"

namespace offprof {

/// Options of a DiskDriver.
struct DiskDriverOptions {
  int fd = -1;
  std::string folder;        ///< named in errors
  Bytes piece_bytes = kMiB;  ///< a multiple of offset_alignment
  int queue_depth = 1;       ///< pieces in progress, in each direction
  bool checksums = false;
  Bytes memory_alignment = 1;
  Bytes offset_alignment = 1;  ///< extents begin and end at multiples of it
};

/// Thread that carries out transfers. It cuts them into pieces and keeps as many pieces in progress as the
/// queue depth allows in each direction. It resubmits the rest of a piece that came back short, and uses a
/// bounce buffer if the caller's memory is not suitable.
class DiskDriver {
 public:
  /// Throws Error (environment) if the machine has no thread left for it.
  DiskDriver(DiskDriverOptions options, std::unique_ptr<DiskQueue> queue);
  ~DiskDriver();  ///< waits for pieces in progress; drops the rest
  DiskDriver(const DiskDriver&) = delete;
  DiskDriver& operator=(const DiskDriver&) = delete;

  DiskTier::Ticket enqueue(Transfer transfer);
  TransferBook& book() { return book_; }

 private:
  /// Part of a transfer, in progress.
  struct Piece {
    Transfer* transfer = nullptr;
    Bytes begin = 0;         ///< offset in the transfer
    Bytes bytes = 0;         ///< bytes that the caller writes or wants
    Bytes summed_bytes = 0;  ///< bytes covered by the checksum; a reader may want fewer
    Bytes disk_bytes = 0;    ///< bytes that go to or from the disk, with padding
    Bytes done_bytes = 0;    ///< completed part of disk_bytes
    int fruitless = 0;       ///< number of times in a row that it came back with nothing
    std::byte* memory = nullptr;
    AlignedBuffer bounce;  ///< null: the piece goes to or from the caller's memory
  };
  /// State of one direction.
  struct Lane {
    DiskDirection direction = DiskDirection::kRead;
    Transfer* transfer = nullptr;  ///< transfer to cut pieces from; null: take the next one
    int under_way = 0;             ///< pieces in progress
  };

  void run();
  void fill(Lane& lane);
  bool find_work(Lane& lane);
  void begin(Transfer& transfer) const;
  void start_piece(Lane& lane);
  Piece cut(Transfer& transfer) const;
  bool place(Piece& piece);
  AlignedBuffer take_bounce();
  void submit(std::uint64_t id);

  void complete(const DiskCompletion& completion);
  bool goes_on(Piece& piece, std::int64_t result) const;
  void finish(Piece& piece);
  void fail(const Piece& piece, Error failure);
  void retire(std::uint64_t id);
  void end(Transfer& transfer);

  Lane& lane(DiskDirection direction) { return lanes_[direction == DiskDirection::kRead ? 0 : 1]; }
  std::uint64_t& checksum_at(const Piece& piece) const;
  Error failure_of(const Piece& piece, const std::string& why, const std::string& hint) const;

  DiskDriverOptions options_;
  std::unique_ptr<DiskQueue> queue_;
  TransferBook book_;
  std::array<Lane, 2> lanes_ = {Lane{DiskDirection::kRead}, Lane{DiskDirection::kWrite}};
  std::vector<Piece> pieces_;  ///< by id
  std::vector<std::uint64_t> free_ids_;
  std::vector<AlignedBuffer> free_bounces_;
  std::vector<DiskCompletion> completions_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace offprof

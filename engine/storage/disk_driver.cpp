#include "engine/storage/disk_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <system_error>
#include <utility>

#include "engine/storage/checksum.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// Maximum number of times that a piece may come back with nothing before it has failed.
constexpr int kMostFruitless = 100;

constexpr const char* kDiskHint =
    "the disk may be failing: check the kernel's log (dmesg), or give a folder on another disk";

bool is_transient(std::int64_t result) {
  return result == -EINTR || result == -EAGAIN || result == 0;
}

std::thread start_driver(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw environment_error(
        std::string("cannot start a thread for the disk tier: ") + error.what(),
        "stop other processes, or raise the limits on processes and memory (`ulimit -u`, `-v`)");
  }
}

}  // namespace

DiskDriver::DiskDriver(DiskDriverOptions options, std::unique_ptr<DiskQueue> queue)
    : options_(std::move(options)), queue_(std::move(queue)) {
  const auto most = 2 * static_cast<std::size_t>(options_.queue_depth);
  pieces_.resize(most);
  for (std::size_t id = 0; id < most; ++id) free_ids_.push_back(id);
  thread_ = start_driver([this] { run(); });
}

DiskDriver::~DiskDriver() {
  stopping_ = true;
  queue_->wake();
  thread_.join();
}

DiskTier::Ticket DiskDriver::enqueue(Transfer transfer) {
  // Allocate here and not when the transfer begins: here the caller gets the error if there is no memory.
  if (options_.checksums && transfer.direction == DiskDirection::kWrite)
    transfer.checksums.resize(
        static_cast<std::size_t>((transfer.bytes + options_.piece_bytes - 1) / options_.piece_bytes));
  const DiskTier::Ticket ticket = book_.enqueue(std::move(transfer));
  queue_->wake();
  return ticket;
}

void DiskDriver::run() {
  while (!stopping_ || free_ids_.size() < pieces_.size()) {
    for (Lane& each : lanes_) fill(each);
    queue_->wait(completions_);
    for (const DiskCompletion& completion : completions_) complete(completion);
    completions_.clear();
  }
}

void DiskDriver::fill(Lane& lane) {
  while (lane.under_way < options_.queue_depth && find_work(lane)) start_piece(lane);
}

/// True if there is a transfer to cut a piece from.
bool DiskDriver::find_work(Lane& lane) {
  while (!stopping_ && lane.transfer == nullptr) {
    Transfer* next = book_.begin_next(lane.direction);
    if (next == nullptr) return false;
    begin(*next);
    if (next->failure) {
      book_.end(next);
    } else {
      lane.transfer = next;
    }
  }
  return !stopping_;
}

void DiskDriver::begin(Transfer& transfer) const {
  ExtentContents& contents = *transfer.contents;
  if (transfer.direction == DiskDirection::kRead) {
    transfer.failure = contents.failure;
    return;
  }
  contents = {};
  contents.checksums = std::move(transfer.checksums);
}

void DiskDriver::start_piece(Lane& lane) {
  const std::uint64_t id = free_ids_.back();
  free_ids_.pop_back();
  Transfer& transfer = *lane.transfer;
  Piece& piece = pieces_[id];
  piece = cut(transfer);
  ++lane.under_way;
  ++transfer.pieces_under_way;
  if (transfer.cut_bytes == transfer.bytes) lane.transfer = nullptr;
  if (place(piece)) {
    submit(id);
  } else {
    fail(piece, failure_of(piece, "no memory for a bounce buffer",
                           "free host memory, or use buffers from make_aligned_buffer"));
    retire(id);
  }
}

DiskDriver::Piece DiskDriver::cut(Transfer& transfer) const {
  const auto piece_of = [&](Bytes bytes) {
    return std::min(options_.piece_bytes, bytes - transfer.cut_bytes);
  };
  Piece piece;
  piece.transfer = &transfer;
  piece.begin = transfer.cut_bytes;
  piece.bytes = piece_of(transfer.bytes);
  const bool checks = options_.checksums && transfer.direction == DiskDirection::kRead;
  piece.summed_bytes = checks ? piece_of(transfer.contents->written_bytes) : piece.bytes;
  piece.disk_bytes = round_up(piece.summed_bytes, options_.offset_alignment);
  transfer.cut_bytes += piece.bytes;
  return piece;
}

/// Gives the piece memory that is suitable for the disk, filled with the caller's bytes if it is a write.
/// Returns false if the machine has no memory left.
bool DiskDriver::place(Piece& piece) {
  std::byte* callers = piece.transfer->memory + piece.begin;
  const bool writes = piece.transfer->direction == DiskDirection::kWrite;
  if (writes && options_.checksums) checksum_at(piece) = checksum_of(callers, piece.bytes);
  const auto misaligned =
      reinterpret_cast<std::uintptr_t>(callers) % static_cast<std::uintptr_t>(options_.memory_alignment);
  if (piece.disk_bytes == piece.bytes && misaligned == 0) {
    piece.memory = callers;
    return true;
  }
  piece.bounce = take_bounce();
  piece.memory = piece.bounce.get();
  if (piece.memory == nullptr) return false;
  if (writes) {
    std::memcpy(piece.memory, callers, static_cast<std::size_t>(piece.bytes));
    std::memset(piece.memory + piece.bytes, 0, static_cast<std::size_t>(piece.disk_bytes - piece.bytes));
  }
  return true;
}

AlignedBuffer DiskDriver::take_bounce() {
  if (free_bounces_.empty()) return make_aligned_buffer(options_.piece_bytes);
  AlignedBuffer buffer = std::move(free_bounces_.back());
  free_bounces_.pop_back();
  return buffer;
}

void DiskDriver::submit(std::uint64_t id) {
  const Piece& piece = pieces_[id];
  const Transfer& transfer = *piece.transfer;
  queue_->submit({transfer.direction, options_.fd, piece.memory + piece.done_bytes,
                  piece.disk_bytes - piece.done_bytes, transfer.offset + piece.begin + piece.done_bytes, id});
}

void DiskDriver::complete(const DiskCompletion& completion) {
  Piece& piece = pieces_[completion.id];
  if (goes_on(piece, completion.result)) {
    submit(completion.id);
    return;
  }
  if (piece.done_bytes == piece.disk_bytes) {
    finish(piece);
  } else {
    const int error = completion.result < 0 ? static_cast<int>(-completion.result) : EIO;
    fail(piece, failure_of(piece, std::strerror(error), kDiskHint));
  }
  retire(completion.id);
}

/// Counts the bytes that came and returns true if the rest must be requested.
bool DiskDriver::goes_on(Piece& piece, std::int64_t result) const {
  if (result < 0 && !is_transient(result)) return false;
  Bytes came = std::max<Bytes>(result, 0);
  // Direct I/O can continue only at a multiple of the alignment.
  if (piece.done_bytes + came < piece.disk_bytes) came -= came % options_.offset_alignment;
  piece.done_bytes += came;
  piece.fruitless = came > 0 ? 0 : piece.fruitless + 1;
  return piece.done_bytes < piece.disk_bytes && piece.fruitless < kMostFruitless;
}

void DiskDriver::finish(Piece& piece) {
  const Transfer& transfer = *piece.transfer;
  if (transfer.direction == DiskDirection::kWrite) return;
  if (options_.checksums && checksum_of(piece.memory, piece.summed_bytes) != checksum_at(piece)) {
    fail(piece, failure_of(piece, "its checksum differs from the checksum of the data that was written there",
                           kDiskHint));
  } else if (piece.bounce != nullptr) {
    std::memcpy(transfer.memory + piece.begin, piece.memory, static_cast<std::size_t>(piece.bytes));
  }
}

void DiskDriver::fail(const Piece& piece, Error failure) {
  Transfer& transfer = *piece.transfer;
  if (!transfer.failure) transfer.failure = std::move(failure);
  if (Lane& its = lane(transfer.direction); its.transfer == &transfer) its.transfer = nullptr;
}

/// Frees the piece after success or failure.
void DiskDriver::retire(std::uint64_t id) {
  Piece& piece = pieces_[id];
  if (piece.bounce != nullptr) free_bounces_.push_back(std::move(piece.bounce));
  free_ids_.push_back(id);
  Transfer& transfer = *piece.transfer;
  --lane(transfer.direction).under_way;
  --transfer.pieces_under_way;
  if (transfer.pieces_under_way == 0 && (transfer.failure || transfer.cut_bytes == transfer.bytes))
    end(transfer);
}

void DiskDriver::end(Transfer& transfer) {
  if (transfer.direction == DiskDirection::kWrite) {
    transfer.contents->written_bytes = transfer.bytes;
    transfer.contents->failure = transfer.failure;
  }
  book_.end(&transfer);
}

std::uint64_t& DiskDriver::checksum_at(const Piece& piece) const {
  return piece.transfer->contents->checksums[static_cast<std::size_t>(piece.begin / options_.piece_bytes)];
}

Error DiskDriver::failure_of(const Piece& piece, const std::string& why, const std::string& hint) const {
  const bool writes = piece.transfer->direction == DiskDirection::kWrite;
  return environment_error(
      fmt::format("cannot {} {} at offset {} of the disk tier's scratch file in '{}': {}",
                  writes ? "write" : "read", format_bytes(piece.disk_bytes - piece.done_bytes),
                  piece.transfer->offset + piece.begin + piece.done_bytes, options_.folder, why),
      hint);
}

}  // namespace offprof

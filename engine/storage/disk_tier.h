#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Mechanism that carries out transfers to the disk.
enum class DiskBackend : std::uint8_t {
  kAuto,     ///< io_uring where it works, else threads
  kIoUring,  ///< Linux's io_uring(7), through liburing
  kThreads,  ///< a pool of threads with pread(2) and pwrite(2)
};

/// Choice of direct I/O (O_DIRECT), which bypasses the page cache.
enum class DirectIo : std::uint8_t {
  kAuto,  ///< if the file system supports it
  kOff,
};

struct DiskTierOptions {
  /// Maximum size of the scratch file; none: as much as the disk allows.
  std::optional<Bytes> capacity_bytes;
  bool checksums = false;  ///< computed for each piece written, checked when it is read
  DiskBackend backend = DiskBackend::kAuto;
  DirectIo direct_io = DirectIo::kAuto;
  Bytes piece_bytes = kMiB;  ///< a larger transfer is cut into such pieces; a multiple of 4 KiB
  int queue_depth = 8;       ///< pieces in progress at once, in each direction
};

/// Facts about the tier: its folder, and the mechanisms that it chose.
struct DiskTierFacts {
  std::string folder;
  std::string file_system;  ///< name, such as `ext4`
  Bytes free_bytes = 0;     ///< free bytes of the file system when the tier was created
  DiskBackend backend = DiskBackend::kThreads;
  /// Reason for not using io_uring; empty: io_uring is used, or threads were requested.
  std::string why_threads;
  bool direct_io = false;
  std::string why_buffered;    ///< reason for buffered I/O; empty: I/O is direct
  Bytes memory_alignment = 1;  ///< alignment of the caller's memory for transfers without a bounce buffer
  Bytes offset_alignment = 1;  ///< alignment of the offset and the length of each piece in the file
  std::string warning;         ///< `... is on tmpfs, which is memory`; empty: none
};

/// Returns a description such as `io_uring, direct I/O, ext4 in /scratch with 79.0 GiB free`, with the reason
/// if the tier uses a fallback.
std::string describe(const DiskTierFacts& facts);

/// Range of the scratch file, for one tensor.
struct Extent {
  Bytes offset = 0;
  Bytes bytes = 0;  ///< as requested
  bool operator==(const Extent&) const = default;
};

enum class DiskDirection : std::uint8_t { kWrite, kRead };

/// Times of one transfer, on std::chrono::steady_clock.
struct DiskRecord {
  DiskDirection direction = DiskDirection::kWrite;
  Nanoseconds begin_ns = 0;  ///< its first piece was handed to the backend
  Nanoseconds end_ns = 0;    ///< its last piece was complete
  Bytes bytes = 0;
  std::int64_t tag = 0;
};

struct DiskEdges;

/// Keeps tensors on disk. It owns one unnamed scratch file, which disappears with the process however the
/// process ends, allocates space in it, and runs many asynchronous transfers at once. Any thread may call it.
class DiskTier {
 public:
  using Ticket = std::uint64_t;

  /// Throws Error: (input) if no file can be created in `folder`; (environment) if the machine has no threads
  /// or file descriptors left, or does not support the requested backend.
  explicit DiskTier(const std::string& folder, const DiskTierOptions& options = {});
  DiskTier(const std::string& folder, const DiskTierOptions& options, const DiskEdges& edges);  ///< for tests
  /// Waits for transfers in progress; drops transfers that have not begun.
  ~DiskTier();
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  /// Reserves space for `bytes` > 0. The space is allocated on the disk, so no later write fails for lack of
  /// space. Takes the lowest range that fits, so the same calls get the same extents. Returns nullopt and
  /// sets `why_not` if the capacity is used up or the disk is full. Throws Error if the disk fails.
  std::optional<Extent> reserve(Bytes bytes, std::string* why_not = nullptr);
  /// Returns the space to the tier; first waits for transfers in progress in it.
  void release(const Extent& extent);

  /// Begins to write the first `bytes` of `extent`. `from` must live and stay unchanged until the ticket is
  /// done. Transfers of one extent run in the order of the calls; transfers of different extents run in any
  /// order.
  Ticket write(const Extent& extent, const std::byte* from, Bytes bytes, std::int64_t tag = 0);
  /// Begins to read the first `bytes` of `extent`, at most as many as were written last. Changes no byte
  /// beyond them in `to`, which must live until the ticket is done.
  Ticket read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag = 0);

  /// True if the transfer has ended, with or without an error.
  bool is_done(Ticket ticket) const;
  /// Returns when the transfer has ended. Throws Error (environment), on each call, if the transfer failed,
  /// if it read data whose write failed, or if the data differ from what was written (with checksums).
  void wait(Ticket ticket) const;

  /// Waits until no transfer is in progress and returns the records since the last call. Failed transfers
  /// have no record.
  std::vector<DiskRecord> take_records();

  Bytes used_bytes() const;  ///< size of live extents, as requested
  Bytes peak_bytes() const;  ///< maximum of used_bytes since the last reset_peak
  Bytes file_bytes() const;  ///< bytes allocated on the disk
  void reset_peak();

  const DiskTierFacts& facts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace offprof

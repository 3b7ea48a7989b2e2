#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// Who carries transfers to the disk.
enum class DiskBackend : std::uint8_t {
  kAuto,     ///< io_uring where it works, else threads
  kIoUring,  ///< Linux's io_uring(7), by liburing
  kThreads,  ///< a pool of threads in pread(2) and pwrite(2)
};

/// Whether transfers go past the page cache, by O_DIRECT.
enum class DirectIo : std::uint8_t {
  kAuto,  ///< where the file system takes it
  kOff,
};

struct DiskTierOptions {
  std::optional<Bytes> capacity_bytes;  ///< how large the scratch file may become; none: as the disk allows
  bool checksums = false;               ///< of each piece written, checked when it is read
  DiskBackend backend = DiskBackend::kAuto;
  DirectIo direct_io = DirectIo::kAuto;
  Bytes piece_bytes = kMiB;  ///< a larger transfer is cut into such pieces; a multiple of 4 KiB
  int queue_depth = 8;       ///< pieces under way at once, in each direction
};

/// What the tier found in its folder and made of it.
struct DiskTierFacts {
  std::string folder;
  std::string file_system;  ///< `ext4`
  Bytes free_bytes = 0;     ///< of the file system, when the tier was made
  DiskBackend backend = DiskBackend::kThreads;
  std::string why_threads;  ///< and not io_uring; empty: io_uring, or threads were asked for
  bool direct_io = false;
  std::string why_buffered;    ///< why I/O is not direct; empty: it is
  Bytes memory_alignment = 1;  ///< that transfers without a bounce buffer need of the caller's memory
  Bytes offset_alignment = 1;  ///< of each piece's place and length in the file
  std::string warning;         ///< `... is on tmpfs, which is memory`; empty: none
};

/// `io_uring, direct I/O, ext4 in /scratch with 79.0 GiB free`, and the reasons where one of these is second
/// best.
std::string describe(const DiskTierFacts& facts);

/// A stretch of the scratch file, for one tensor.
struct Extent {
  Bytes offset = 0;
  Bytes bytes = 0;  ///< as asked for
  bool operator==(const Extent&) const = default;
};

enum class DiskDirection : std::uint8_t { kWrite, kRead };

/// What one transfer took, on std::chrono::steady_clock.
struct DiskRecord {
  DiskDirection direction = DiskDirection::kWrite;
  Nanoseconds begin_ns = 0;  ///< its first piece was handed to the backend
  Nanoseconds end_ns = 0;    ///< its last piece was there
  Bytes bytes = 0;
  std::int64_t tag = 0;
};

struct DiskEdges;

/// Tensors on disk: one scratch file without a name, which goes with the process however that ends, its
/// space, and asynchronous transfers to and from it, many at once. Any thread may call it.
class DiskTier {
 public:
  using Ticket = std::uint64_t;

  /// Throws Error: (input) where no file can be made in `folder`, (environment) where the machine has no
  /// threads or no file descriptors left, or not the backend that was asked for.
  explicit DiskTier(const std::string& folder, const DiskTierOptions& options = {});
  DiskTier(const std::string& folder, const DiskTierOptions& options, const DiskEdges& edges);  ///< for tests
  /// Ends what is under way; transfers that have not begun are dropped.
  ~DiskTier();
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  /// Space for `bytes` > 0, really allocated, so that no write fails for want of it. The first place that
  /// fits, so that the same calls get the same extents. nullopt, and why, where the capacity or the disk is
  /// full. Throws Error where the disk fails.
  std::optional<Extent> reserve(Bytes bytes, std::string* why_not = nullptr);
  /// Gives the space back to the tier; first waits for what is under way in it.
  void release(const Extent& extent);

  /// Begins to write the first `bytes` of `extent`. `from` must live and stay as it is until the ticket is
  /// done. Transfers of one extent follow each other in the order of calls; those of different extents do
  /// not.
  Ticket write(const Extent& extent, const std::byte* from, Bytes bytes, std::int64_t tag = 0);
  /// Begins to read the first `bytes` of `extent`, at most as many as were written last. Touches nothing
  /// beyond them in `to`, which must live until the ticket is done.
  Ticket read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag = 0);

  /// Whether it has ended, well or not.
  bool is_done(Ticket ticket) const;
  /// Returns when it has ended. Throws Error (environment) each time if it failed, or if it read what could
  /// not be written or what is not what was written (with checksums).
  void wait(Ticket ticket) const;

  /// Waits until nothing is under way, and hands out the records since the last call; failed transfers have
  /// none.
  std::vector<DiskRecord> take_records();

  Bytes used_bytes() const;  ///< of live extents, as asked for
  Bytes peak_bytes() const;  ///< of used_bytes, since the last reset_peak
  Bytes file_bytes() const;  ///< allocated on the disk
  void reset_peak();

  const DiskTierFacts& facts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace offprof

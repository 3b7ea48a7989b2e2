#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/storage/compressed_tier.h"
#include "engine/storage/disk_tier.h"
#include "traces/base/error.h"
#include "traces/base/units.h"
#include "traces/model/link.h"

namespace offprof {

/// A device's copy queues, each serial. Usually there is one per direction; if a policy has one copy stream,
/// kD2h carries both directions.
enum class CopyQueue : std::uint8_t { kD2h, kH2d };

/// The disk that a run requests.
struct DiskRequest {
  std::string folder;  ///< empty if the disk is modelled (as on a virtual device) or `compressed`
  bool checksums = false;
  DiskLink speed{};         ///< of a modelled disk
  bool compressed = false;  ///< no disk, but host memory that holds tensors compressed
};

/// One transfer that has been started: its holder can wait for it.
struct DiskTransfer {
  virtual ~DiskTransfer() = default;
};

/// The disk beside a device: its contents, and transfers between it and host memory, in the order of the
/// device's copy queues. A step drives it from one thread at a time.
class DeviceDisk {
 public:
  using Transfer = std::shared_ptr<const DiskTransfer>;

  virtual ~DeviceDisk() = default;

  /// See DiskTier::reserve.
  virtual std::optional<Extent> reserve(Bytes bytes, std::string* why_not) = 0;
  /// Frees the extent. Its transfers must be complete, or be reads that a queue was held for and whose copies
  /// compute waits for.
  virtual void release(const Extent& extent) = 0;

  /// Starts a write when `queue` has completed all that it was given so far. `from` must stay alive and
  /// unchanged until the transfer is waited for. The same holds for `to` in `read`; there it is enough that
  /// compute waits for the copy of the data that was read, if the next user of that memory comes after all
  /// that compute was given so far.
  virtual Transfer write(const Extent& extent, const std::byte* from, Bytes bytes, CopyQueue queue,
                         std::int64_t tag) = 0;
  virtual Transfer read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) = 0;
  /// Delays work that `queue` is given from here on until the read is complete, whether it succeeds or fails.
  virtual void hold(CopyQueue queue, const Transfer& read) = 0;
  /// Blocks the compute thread until the transfer is complete. Throws Error (environment) on each call if the
  /// transfer failed.
  virtual void wait(const Transfer& transfer) = 0;
  /// Returns true if the read is complete; it must be one that a queue was held for and whose copy compute
  /// waits for. Throws if the read failed. Does not block.
  virtual bool check(const Transfer& read) = 0;

  /// Returns the Error that `wait` or `check` threw last since the last call, if any. Inside a TorchScript
  /// module, the interpreter replaces that exception by another.
  virtual std::optional<Error> take_failure() { return std::nullopt; }

  /// Waits until no transfer is in progress, and returns the records since the last call.
  virtual std::vector<DiskRecord> take_records() = 0;
  /// Returns the stored size of the data written since the last call; nullopt: it is stored as it was given.
  virtual std::optional<StoredBytes> take_stored() { return std::nullopt; }
  /// Returns a warning for the user (the file is on tmpfs), or an empty string.
  virtual std::string warning() const = 0;
  /// Describes the disk: `io_uring, direct I/O, ext4 in /scratch with 79.0 GiB free`.
  virtual std::string description() const = 0;
};

}  // namespace offprof

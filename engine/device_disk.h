#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/disk/compressed_tier.h"
#include "engine/disk/disk_tier.h"
#include "traces/error.h"
#include "traces/link.h"
#include "traces/units.h"

namespace offprof {

/// A device's copy queues, each serial. Usually one a direction; where a policy has one copy
/// stream, kD2h carries both.
enum class CopyQueue : std::uint8_t { kD2h, kH2d };

/// What a run asks of the disk.
struct DiskRequest {
  std::string folder;  ///< empty: it is modelled, on a device of which all is, or `compressed`
  bool checksums = false;
  DiskLink speed{};         ///< where it is modelled
  bool compressed = false;  ///< no disk, but host memory in which tensors lie compressed
};

/// One transfer that was begun: whoever holds it can wait for it.
struct DiskTransfer {
  virtual ~DiskTransfer() = default;
};

/// The disk beside a device: what lies on it, and transfers between it and host memory, in the order of the
/// device's copy queues. A step drives it from one thread at a time.
class DeviceDisk {
 public:
  using Transfer = std::shared_ptr<const DiskTransfer>;

  virtual ~DeviceDisk() = default;

  /// See DiskTier::reserve.
  virtual std::optional<Extent> reserve(Bytes bytes, std::string* why_not) = 0;
  /// Of its transfers those must be over, or be reads for which a queue was held and for whose copy compute
  /// waits.
  virtual void release(const Extent& extent) = 0;

  /// Begins when the queue has come to all that it was given so far. `from` must live and stay as it is until
  /// the transfer is waited for; so must `to` in `read`, or until compute waits for the copy of what was
  /// read, if whoever uses that memory next comes after what compute was given so far.
  virtual Transfer write(const Extent& extent, const std::byte* from, Bytes bytes, CopyQueue queue,
                         std::int64_t tag) = 0;
  virtual Transfer read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) = 0;
  /// What the queue is given from here on begins after the read, well or not.
  virtual void hold(CopyQueue queue, const Transfer& read) = 0;
  /// The thread that computes waits. Throws Error (environment) each time if the transfer failed.
  virtual void wait(const Transfer& transfer) = 0;
  /// Of a read for which a queue was held and for whose copy compute waits: whether it is over. Throws if it
  /// failed; takes no time.
  virtual bool check(const Transfer& read) = 0;

  /// What `wait` or `check` last threw, if they did since the last call: where that was inside a TorchScript
  /// module, the interpreter has made something else of it.
  virtual std::optional<Error> take_failure() { return std::nullopt; }

  /// Waits until nothing is under way, and hands out the records since the last call.
  virtual std::vector<DiskRecord> take_records() = 0;
  /// What became of what was written since the last call; nullopt: it lies there as it was given.
  virtual std::optional<StoredBytes> take_stored() { return std::nullopt; }
  /// Empty, or what is to be known of it: it is on tmpfs.
  virtual std::string warning() const = 0;
  /// `io_uring, direct I/O, ext4 in /scratch with 79.0 GiB free`.
  virtual std::string description() const = 0;
};

}  // namespace offprof

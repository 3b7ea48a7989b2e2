#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/device_disk.h"
#include "traces/units.h"

namespace offprof {

/// A point that some queue of a device comes to.
class QueuePoint {
 public:
  virtual ~QueuePoint() = default;
  /// The calling thread waits for it. Throws Error (environment) where the device has failed.
  virtual void wait() = 0;
  /// What the copy queue is given from here on comes after it.
  virtual void hold(CopyQueue queue) = 0;
};

/// A count that only rises, and that copy queues can wait for without a call: a call that waits for a disk
/// keeps CUDA from making others.
class QueueGate {
 public:
  virtual ~QueueGate() = default;
  /// The count is `count` now. Called by one thread, any one, which may not use the device.
  virtual void open(std::uint32_t count) = 0;
  /// What the copy queue is given from here on begins when the count has come to `count`. Throws Error
  /// (environment).
  virtual void hold(CopyQueue queue, std::uint32_t count) = 0;
};

/// A device's queues and clock, as a disk beside it uses them: from one thread at a time.
class DeviceQueues {
 public:
  virtual ~DeviceQueues() = default;
  /// Calls `work` on some thread between what the copy queue was given before and what it is given after.
  /// `work` may neither throw nor use the device. The point that is reached when it has returned.
  virtual std::unique_ptr<QueuePoint> call(CopyQueue queue, std::function<void()> work) = 0;
  /// Likewise when the compute stream has come to all that it was given so far; it does not wait for `work`.
  /// nullptr: it has been called.
  virtual std::unique_ptr<QueuePoint> call_beside_compute(std::function<void()> work) = 0;
  /// A gate at 0, which the queues must outlive; nullptr: they wait for nothing but calls.
  virtual std::unique_ptr<QueueGate> make_gate() { return nullptr; }
  /// Waits until all that is to be called has returned.
  virtual void finish_calls() = 0;
  /// Compute stood still for so long, waiting for the disk.
  virtual void add_exposed(Nanoseconds waited) { (void)waited; }
  /// A time of steady_now on the device's clock.
  virtual Nanoseconds on_device_clock(Nanoseconds steady) const { return steady; }
};

/// A disk in a folder, or in its place compressed host memory, beside a device whose queues get on by
/// themselves. A write is handed over when its queue has made the copy; a read, and space that is given back,
/// when compute has come so far, since until then somebody may use that memory or that space; and a copy in
/// waits in its queue for what it copies: at a gate, which a thread of its own opens when reads are over, so
/// that many are under way at once; or, where the queues have no gate, in a call. The thread that drives the
/// device waits where it is told to, and where the disk is full while space is on its way back.
///
/// `queues` must be there as long as it is used, and idle when it goes. Throws Error (input) for a request
/// without a folder, and what DiskTier or CompressedTier throw.
std::unique_ptr<DeviceDisk> open_tier_disk(const DiskRequest& request, DeviceQueues& queues);

}  // namespace offprof

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/devices/disk/device_disk.h"
#include "traces/base/units.h"

namespace offprof {

/// A point in some queue of a device.
class QueuePoint {
 public:
  virtual ~QueuePoint() = default;
  /// Blocks the calling thread until the queue reaches the point. Throws Error (environment) if the device
  /// has failed.
  virtual void wait() = 0;
  /// Orders work that the copy queue is given from here on after the point.
  virtual void hold(CopyQueue queue) = 0;
};

/// A count that only rises, and that copy queues can wait for without a host call: a host call that waits for
/// a disk keeps CUDA from making others.
class QueueGate {
 public:
  virtual ~QueueGate() = default;
  /// Sets the count to `count`. Called by one thread only, which may be any thread and may not use the
  /// device.
  virtual void open(std::uint32_t count) = 0;
  /// Delays work that the copy queue is given from here on until the count reaches `count`. Throws Error
  /// (environment).
  virtual void hold(CopyQueue queue, std::uint32_t count) = 0;
};

/// A device's queues and clock, as used by a disk beside it. Used from one thread at a time.
class DeviceQueues {
 public:
  virtual ~DeviceQueues() = default;
  /// Calls `work` on some thread, between the copy queue's earlier and later work. `work` may neither throw
  /// nor use the device. Returns the point that is reached when `work` has returned.
  virtual std::unique_ptr<QueuePoint> call(CopyQueue queue, std::function<void()> work) = 0;
  /// Calls `work` in the same way when the compute stream has completed all that it was given so far; the
  /// stream does not wait for `work`. nullptr: `work` has been called already.
  virtual std::unique_ptr<QueuePoint> call_beside_compute(std::function<void()> work) = 0;
  /// Makes a gate with count 0, which the queues must outlive; nullptr: the queues can wait for calls only.
  virtual std::unique_ptr<QueueGate> make_gate() { return nullptr; }
  /// Waits until all pending calls have returned.
  virtual void finish_calls() = 0;
  /// Reports that compute stalled for `waited` on the disk.
  virtual void add_exposed(Nanoseconds waited) { (void)waited; }
  /// Converts a time of steady_now to the device's clock.
  virtual Nanoseconds on_device_clock(Nanoseconds steady) const { return steady; }
};

/// Opens a disk in a folder, or compressed host memory in its place, beside a device whose queues progress by
/// themselves.
///
/// A write is given to the tier when its queue has made the copy. A read, and space to free, are given to the
/// tier when compute has come so far, since that memory or space may be in use until then. A copy in waits in
/// its queue for its data: at a gate, which a separate thread opens when reads are complete, so that many
/// reads are in flight at once; or, if the queues have no gate, in a host call. The thread that drives the
/// device blocks where it is told to wait, and when the disk is full while space is still being freed.
///
/// `queues` must outlive the disk and be idle when the disk is destroyed. Throws Error (input) for a request
/// without a folder, and the exceptions of DiskTier or CompressedTier.
std::unique_ptr<DeviceDisk> open_tiered_device_disk(const DiskRequest& request, DeviceQueues& queues);

}  // namespace offprof

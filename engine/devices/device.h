#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/devices/compute_stream.h"
#include "engine/devices/copy_engine.h"
#include "engine/devices/device_allocator.h"
#include "engine/devices/disk/device_disk.h"
#include "engine/devices/host_allocator.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "traces/base/device_counts.h"

namespace offprof {

/// A device as the engine sees it: device memory, host memory to offload to, one copy queue per direction
/// beside the compute stream, and a clock. Code that needs only one of these takes that interface.
///
/// A step drives it from one thread at a time: autograd may run backward on a thread of its own while the
/// caller waits.
class Device : public DeviceAllocator, public HostAllocator, public CopyEngine, public ComputeStream {
 public:
  virtual c10::Device torch_device() const = 0;
  /// Describes the device for the trace (`CPU, 2 cores`), without anything that identifies the machine.
  virtual std::string description() const = 0;
  /// Returns what the driver reports of the GPU, without the other figures of a profile; nullopt: it is no
  /// GPU.
  virtual std::optional<DeviceProfile> gpu_properties() const { return std::nullopt; }
  /// Returns true if nothing is computed: tensors have no values and times are modelled.
  virtual bool is_virtual() const { return false; }
  DeviceCounts counts() const { return {next_allocation(), commands_given()}; }
  /// Returns why no step of this model can be predicted on the device, if the steps so far have shown it,
  /// once.
  virtual std::optional<Error> take_model_refusal() { return std::nullopt; }
  /// Returns notes for the user that were not returned before, a sentence each.
  virtual std::vector<std::string> take_notes() { return {}; }

  /// Prepares the calling thread to compute, with `compute_threads` threads that it has not started yet. A
  /// device whose copies need cores reserves them apart from those threads, if there are enough.
  virtual void prepare_cores(int compute_threads) { (void)compute_threads; }

  /// Measures the current round trip of a cache line between the core that computes and the core that copies.
  /// No step may be in progress. nullopt: copies have no core of their own.
  virtual std::optional<Nanoseconds> core_to_core_ns() { return std::nullopt; }

  // --- The disk ---

  /// Opens a disk to offload to, replacing one that was open; no step may be in progress. Throws Error
  /// (input) if no file can be made in the folder, or if this device has no such disk.
  virtual void open_disk(const DiskRequest& request) = 0;
  /// Returns the open disk; nullptr: none was opened.
  virtual DeviceDisk* disk() = 0;
};

}  // namespace offprof

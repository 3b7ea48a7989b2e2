#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/device.h"
#include "traces/units.h"

namespace offprof {

/// Where pages wait while they are not on the device. Slots are counted from 0.
class WeightStore {
 public:
  using Slot = std::int32_t;

  virtual ~WeightStore() = default;
  /// Room for so many bytes, for as long as the store is there. Throws Error (environment).
  virtual Slot add(Bytes bytes) = 0;
  /// Begins to bring a slot's bytes to device memory, after all that the compute stream was given so far.
  virtual void begin_load(Slot slot, void* to) = 0;
  /// The compute stream waits until they are there. Where it throws, nothing of the load is under way.
  virtual void wait_for_load(Slot slot) = 0;
  /// Takes them from device memory. The compute stream waits until they are taken. Where it throws, nothing
  /// of it is under way.
  virtual void save(Slot slot, const void* from) = 0;
  /// Throws Error (environment) where something else came than what was saved, of which wait_for_load could
  /// not tell.
  virtual void end_step() {}
  /// Of the device's host memory it takes so much at most, where loads of `loading_bytes` are under way at
  /// once.
  virtual Bytes host_bytes(Bytes loading_bytes) const = 0;
  /// Empty, or what is to be known of it: it is on tmpfs.
  virtual std::string warning() const { return {}; }
  /// Whether its copies go over the device's link, and to the disk beside the device, as those of saved
  /// tensors do.
  virtual bool is_over_link() const = 0;
  virtual bool is_over_disk() const { return false; }
};

/// In the device's host memory. `device` must outlive it.
std::unique_ptr<WeightStore> make_host_weight_store(Device& device);
/// On the disk that was opened beside the device, by way of its host memory. `device` must outlive it.
std::unique_ptr<WeightStore> make_device_disk_weight_store(Device& device);
/// In a file of `folder` that no name leads to and that goes with the process. Of a device whose memory the
/// processor reaches. Throws Error (input): no file can be made there.
std::unique_ptr<WeightStore> make_disk_weight_store(const std::string& folder);

}  // namespace offprof

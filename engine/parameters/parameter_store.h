#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/devices/device.h"
#include "engine/tensors/files/readable_file.h"
#include "traces/base/units.h"

namespace offprof {

/// Storage of parameter groups while they are not on the device. Slots are counted from 0.
class ParameterStore {
 public:
  using Slot = std::int32_t;

  virtual ~ParameterStore() = default;
  /// Reserves space for `bytes` for the lifetime of the store. Throws Error (environment).
  virtual Slot add(Bytes bytes) = 0;
  /// Adds a slot whose bytes are read from a file until the first save. The file must stay as it is for the
  /// lifetime of the store. Returns nullopt, and adds nothing, if the store reads no other files.
  virtual std::optional<Slot> add_file(const FileRange& /*range*/) { return std::nullopt; }
  /// Starts to load a slot to device memory, after all that the compute stream was given so far.
  virtual void begin_load(Slot slot, void* to) = 0;
  /// Makes the compute stream wait for the load. If it throws, the load is no longer in progress.
  virtual void wait_for_load(Slot slot) = 0;
  /// Copies device memory to the slot. The compute stream waits until it has been copied. If it throws, no
  /// copy is in progress.
  virtual void save(Slot slot, const void* from) = 0;
  /// Throws Error (environment) if loaded data differ from the saved data and wait_for_load could not detect
  /// it.
  virtual void end_step() {}
  /// Returns the maximum of the device's host memory that the store takes while loads of `loading_bytes` are
  /// in flight at once.
  virtual Bytes host_bytes(Bytes loading_bytes) const = 0;
  /// Returns a warning for the user (the file is on tmpfs), or an empty string.
  virtual std::string warning() const { return {}; }
  /// Returns true if copies go over the device's link (is_over_link), or to the disk beside the device
  /// (is_over_disk), like those of saved tensors.
  virtual bool is_over_link() const = 0;
  virtual bool is_over_disk() const { return false; }
};

/// Makes a store in the device's host memory. `device` must outlive it.
std::unique_ptr<ParameterStore> make_host_parameter_store(Device& device);
/// Makes a store on the disk that was opened beside the device; data go through the device's host memory.
/// `device` must outlive it.
std::unique_ptr<ParameterStore> make_device_disk_parameter_store(Device& device);
/// Makes a store in an unnamed file of `folder`, which vanishes with the process. For a device with memory
/// that the processor can access. Throws Error (input) if no file can be made there.
std::unique_ptr<ParameterStore> make_disk_parameter_store(const std::string& folder);

}  // namespace offprof

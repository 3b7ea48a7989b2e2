#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/devices/device.h"
#include "engine/devices/disk/step_disk_copies.h"
#include "engine/scheduler/command.h"
#include "engine/transforms/transform.h"

namespace offprof {

/// The copies of a step's saved tensors: in host memory, on the device, on a disk, encoded. It executes the
/// scheduler's commands on them.
class StepCopies {
 public:
  struct Copy {
    std::byte* host = nullptr;  ///< nullptr: none, or freed
    Bytes bytes = 0;            ///< bytes to copy
    c10::Storage device_storage;
    bool reloaded = false;  ///< its device storage is not the one that was saved
    CopyQueue queue = CopyQueue::kD2h;
    Device::Event event = 0;
    std::shared_ptr<const Transform> transform{};  ///< encoder of the copy; nullptr: not encoded
    at::ScalarType type = at::kByte;               ///< type of the encoded numbers
    std::int64_t elements = 0;
    c10::IValue rest{};  ///< encoder output beside the bytes
  };

  /// `device` must outlive this object. `copies_tensors`: copies each tensor densely, else whole storages.
  StepCopies(Device& device, bool copies_tensors, CopyQueue reload_queue);
  /// Waits for the copies that nobody waited for, and frees their host memory.
  ~StepCopies();
  StepCopies(const StepCopies&) = delete;
  StepCopies& operator=(const StepCopies&) = delete;

  const Copy& operator[](CopyId copy) const { return copies_[copy]; }
  /// Returns the storage of the shell of a tensor whose values are elsewhere.
  const c10::Storage& no_storage() const { return no_storage_; }
  bool is_on_device(CopyId copy) const {
    return copies_[copy].device_storage.unsafeGetStorageImpl() != no_storage_.unsafeGetStorageImpl();
  }

  /// Executes the command, of a copy of `value` or of its encoded bytes.
  void run(const CopyOut& command, const at::Tensor& value);
  void run(const CopyIn& command);
  /// Encodes the storage of `value`.
  void run(const Encode& command, const at::Tensor& value, std::shared_ptr<const Transform> transform);
  void run(const Decode& command);
  void run(const WaitOut& command);
  void run(const WaitIn& command);
  bool take_disk(const TakeDisk& command) { return disk_.take(command); }
  void run(const WriteDisk& command);
  void run(const ReadDisk& command);
  void run(const OneOf<WaitWrite, WaitRead> auto& command) { disk_.wait(command.copy); }
  void run(const FreeDisk& command) { disk_.free(command); }
  /// Throws if data that was read from the disk in the step differs from the data that was written.
  void finish_disk_reads() { disk_.finish_reads(); }
  void run(const DropForRecompute& command);
  /// `make` returns the recomputed storage; it is not called if the memory has already been taken.
  void run(const Recompute& command, const std::function<c10::Storage()>& make);
  void run(const Drop& command) { copies_[command.copy].device_storage = no_storage_; }
  void run(const FreeHost& command);
  /// Takes the memory for the command, which is executed next. Throws c10::OutOfMemoryError.
  void take_memory_for(const CopyIn& command) { taken_memory_ = device_.allocate(command.bytes); }
  void take_memory_for(const Decode& command) { taken_memory_ = decoded(copies_[command.copy]); }
  /// Takes `storage`, with its content, for the Recompute that is executed next.
  void take_memory(c10::Storage storage) { taken_memory_ = std::move(storage); }

  /// Returns the host memory of saved tensors of older steps, whose graphs still exist.
  Bytes older_host_bytes() const { return device_.saved_host_bytes() - host_bytes_; }
  /// Returns the maximum over the step, with that of older steps.
  Bytes host_peak_bytes() const { return host_peak_bytes_; }
  Bytes d2h_bytes() const { return d2h_bytes_; }
  Bytes h2d_bytes() const { return h2d_bytes_; }
  const StepDiskCopies& disk() const { return disk_; }

 private:
  std::byte* take_host(Bytes bytes);
  Device::Event queue_copy_out(const Copy& copy, const at::Tensor& value, CopyId id);
  c10::Storage decoded(const Copy& copy) const;
  void wait(const Copy& copy) { device_.wait(copy.queue, copy.event); }
  void wait_at_any_rate(const Copy& copy) noexcept;

  Device& device_;
  bool copies_tensors_;
  CopyQueue reload_queue_;
  c10::Storage no_storage_;
  std::vector<Copy> copies_;
  StepDiskCopies disk_;
  std::optional<c10::Storage> taken_memory_;
  Bytes host_bytes_ = 0, host_peak_bytes_;
  Bytes d2h_bytes_ = 0, h2d_bytes_ = 0;
};

}  // namespace offprof

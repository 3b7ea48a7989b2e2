#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/device.h"
#include "engine/disk_copies.h"
#include "engine/schedule/scheduler.h"
#include "engine/transforms/transform.h"

namespace offprof {

/// The copies of a step's saved tensors: in host memory, on the device, on a disk, packed. It carries out
/// what the scheduler commands of them.
class StepCopies {
 public:
  struct Copy {
    std::byte* host = nullptr;  ///< nullptr: none, or given back
    Bytes bytes = 0;            ///< that are copied
    c10::Storage device_storage;
    bool reloaded = false;  ///< its device storage is not the one that was saved
    CopyQueue queue = CopyQueue::kD2h;
    Device::Event event = 0;
    std::shared_ptr<const Transform> transform{};  ///< that packed it; nullptr: none did
    at::ScalarType type = at::kByte;               ///< of what it packed
    std::int64_t elements = 0;
    c10::IValue rest{};  ///< that it left beside the bytes
  };

  /// `device` must outlive it. `copies_tensors`: each tensor is copied densely, else whole storages.
  StepCopies(Device& device, bool copies_tensors, CopyQueue reload_queue);
  /// Waits for what nobody waited for, and gives its host memory back.
  ~StepCopies();
  StepCopies(const StepCopies&) = delete;
  StepCopies& operator=(const StepCopies&) = delete;

  const Copy& operator[](CopyId copy) const { return copies_[copy]; }
  /// What the shell of a tensor holds whose values are elsewhere.
  const c10::Storage& no_storage() const { return no_storage_; }
  bool is_on_device(CopyId copy) const {
    return copies_[copy].device_storage.unsafeGetStorageImpl() != no_storage_.unsafeGetStorageImpl();
  }

  /// kCopyOut of `value`, or of what it was packed into.
  void copy_out(const Command& command, const at::Tensor& value);
  void copy_in(const Command& command);
  /// kEncode of the storage of `value`.
  void encode(const Command& command, const at::Tensor& value, std::shared_ptr<const Transform> transform);
  void decode(const Command& command);
  void wait(const Command& command);
  bool take_disk(const Command& command) { return disk_.take(command); }
  void write_disk(const Command& command);
  void read_disk(const Command& command);
  void wait_for_disk(const Command& command) { disk_.wait(command.copy); }
  void free_disk(const Command& command) { disk_.free(command); }
  /// What was read from the disk in the step is what was written: throws where it is not.
  void finish_disk_reads() { disk_.finish_reads(); }
  void discard(const Command& command);
  /// `make`: its storage; not asked for where the memory has been taken.
  void remake(const Command& command, const std::function<c10::Storage()>& make);
  void drop(CopyId copy) { copies_[copy].device_storage = no_storage_; }
  void free_host(const Command& command);
  /// Takes the memory for the kCopyIn or kDecode that is carried out next. Throws c10::OutOfMemoryError.
  void take_memory_for(const Command& command);
  /// Likewise `storage`, with all that is in it, for the kRemake.
  void take_memory(c10::Storage storage) { taken_memory_ = std::move(storage); }

  Bytes host_peak_bytes() const { return host_peak_bytes_; }
  Bytes d2h_bytes() const { return d2h_bytes_; }
  Bytes h2d_bytes() const { return h2d_bytes_; }
  const DiskCopies& disk() const { return disk_; }

 private:
  std::byte* take_host(Bytes bytes);
  Device::Event queue_copy_out(const Copy& copy, const at::Tensor& value, CopyId id);
  c10::Storage decoded(const Copy& copy) const;
  void wait_at_any_rate(const Copy& copy) noexcept;

  Device& device_;
  bool copies_tensors_;
  CopyQueue reload_queue_;
  c10::Storage no_storage_;
  std::vector<Copy> copies_;
  DiskCopies disk_;
  std::optional<c10::Storage> taken_memory_;
  Bytes host_bytes_ = 0, host_peak_bytes_ = 0;
  Bytes d2h_bytes_ = 0, h2d_bytes_ = 0;
};

/// Whether the tensor's elements fill consecutive memory, each in a place of its own.
inline bool is_dense(const at::Tensor& value) {
  return value.is_non_overlapping_and_dense();
}

/// All of the tensor, sharing storage and version counter, without its history: to hold the history would be
/// a cycle.
c10::intrusive_ptr<c10::TensorImpl> shell_of(const at::Tensor& value);

}  // namespace offprof

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/base/check.h"
#include "traces/base/units.h"

namespace offprof {

/// Listener that is notified of every allocated and every freed storage, in order.
class StorageListener {
 public:
  virtual ~StorageListener() = default;
  virtual void on_allocate(std::int32_t storage, Bytes bytes) { (void)storage, (void)bytes; }
  /// The program has freed the storage, but its memory stays in use until on_free.
  virtual void on_free_requested(std::int32_t storage) { (void)storage; }
  virtual void on_free(std::int32_t storage) { (void)storage; }
};

/// Device storages with a count of their holders: the step program, the scheduler's executor, or both. A
/// storage is freed when its last holder releases it. Counts requested bytes.
class VirtualMemory {
 public:
  using Storage = std::int32_t;

  /// `storage_bytes` are the sizes by storage; all storages are absent at first. `resident_bytes` stay live
  /// for good, in addition to the storages. `listener` is nullptr or must outlive the object.
  VirtualMemory(std::span<const Bytes> storage_bytes, Bytes resident_bytes,
                StorageListener* listener = nullptr)
      : bytes_(storage_bytes.begin(), storage_bytes.end()),
        holders_(storage_bytes.size(), 0),
        live_bytes_(resident_bytes),
        peak_bytes_(resident_bytes),
        listener_(listener) {}

  /// Sets the listener of all further calls.
  void set_listener(StorageListener* listener) { listener_ = listener; }

  /// Allocates a storage that the step program does not know, with one holder.
  Storage allocate(Bytes bytes) {
    bytes_.push_back(bytes);
    holders_.push_back(0);
    const auto storage = static_cast<Storage>(bytes_.size() - 1);
    hold(storage);
    return storage;
  }

  /// Adds a holder. The first holder of an absent storage allocates it.
  void hold(Storage storage) {
    if (holders_[storage]++ > 0) return;
    live_bytes_ += bytes_[storage];
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
    if (listener_ != nullptr) listener_->on_allocate(storage, bytes_[storage]);
  }

  /// Counts memory that exists only for a moment; the listener is not notified.
  void pass(Bytes bytes) { peak_bytes_ = std::max(peak_bytes_, live_bytes_ + bytes); }

  /// Adds a holder of a storage that the resident bytes already include.
  void hold_resident(Storage storage) { ++holders_[storage]; }

  /// Takes the only holder from a storage that the resident bytes do not include after all.
  void remove_resident(Storage storage) { --holders_[storage]; }

  /// Adds a storage that the step program does not know and that the resident bytes already include, with one
  /// holder.
  Storage add_resident(Bytes bytes) {
    bytes_.push_back(bytes);
    holders_.push_back(1);
    return static_cast<Storage>(bytes_.size() - 1);
  }

  /// The program will free the storage, which other streams may still use. No matter if anybody else holds
  /// it.
  void request_free(Storage storage) {
    if (holders_[storage] == 1 && listener_ != nullptr) listener_->on_free_requested(storage);
  }

  void free_unpacked(Storage storage) {
    OFFPROF_CHECK(holders_[storage] > 0);
    if (--holders_[storage] > 0) return;
    live_bytes_ -= bytes_[storage];
    if (listener_ != nullptr) listener_->on_free(storage);
  }

  std::int32_t holders(Storage storage) const { return holders_[storage]; }
  bool is_live(Storage storage) const { return holders_[storage] > 0; }
  Bytes bytes(Storage storage) const { return bytes_[storage]; }
  Bytes live_bytes() const { return live_bytes_; }
  Bytes peak_bytes() const { return peak_bytes_; }

 private:
  std::vector<Bytes> bytes_;
  std::vector<std::int32_t> holders_;
  Bytes live_bytes_;
  Bytes peak_bytes_;
  StorageListener* listener_;
};

}  // namespace offprof

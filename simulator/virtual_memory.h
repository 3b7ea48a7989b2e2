#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/check.h"
#include "traces/units.h"

namespace offprof {

/// Device storages with a count of who holds each: the program, the scheduler's executor, or both. A storage
/// whose last holder goes is freed. Counts bytes as requested.
class VirtualMemory {
 public:
  using Storage = std::int32_t;

  /// `storage_bytes` by storage; all are absent at first. `resident_bytes` are live for good, beside them.
  VirtualMemory(std::span<const Bytes> storage_bytes, Bytes resident_bytes)
      : bytes_(storage_bytes.begin(), storage_bytes.end()),
        holders_(storage_bytes.size(), 0),
        live_bytes_(resident_bytes),
        peak_bytes_(resident_bytes) {}

  /// A storage that the program does not know of, held once.
  Storage allocate(Bytes bytes) {
    bytes_.push_back(bytes);
    holders_.push_back(0);
    const auto storage = static_cast<Storage>(bytes_.size() - 1);
    hold(storage);
    return storage;
  }

  /// The first hold of an absent storage allocates it.
  void hold(Storage storage) {
    if (holders_[storage]++ > 0) return;
    live_bytes_ += bytes_[storage];
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  }

  /// A storage that is counted in the resident bytes already.
  void hold_resident(Storage storage) { ++holders_[storage]; }

  void let_go(Storage storage) {
    OFFPROF_CHECK(holders_[storage] > 0);
    if (--holders_[storage] == 0) live_bytes_ -= bytes_[storage];
  }

  bool is_live(Storage storage) const { return holders_[storage] > 0; }
  Bytes bytes(Storage storage) const { return bytes_[storage]; }
  Bytes live_bytes() const { return live_bytes_; }
  Bytes peak_bytes() const { return peak_bytes_; }

 private:
  std::vector<Bytes> bytes_;
  std::vector<std::int32_t> holders_;
  Bytes live_bytes_;
  Bytes peak_bytes_;
};

}  // namespace offprof

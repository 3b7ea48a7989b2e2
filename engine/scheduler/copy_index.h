#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/scheduler/scheduler.h"

namespace offprof {

/// Content of a storage between two changes.
struct StorageVersion {
  std::int64_t storage = 0;
  std::uint32_t version = 0;
  bool operator==(const StorageVersion&) const = default;
};

/// Finds the copy of a storage version. An open-addressing hash table with linear probing in one array, so
/// that a scheduler that owns one is cheap to create and to copy. At least half of its slots are free.
class CopyIndex {
 public:
  static constexpr CopyId kNone = -1;

  CopyId find(const StorageVersion& key) const {
    for (std::size_t slot = home_of(key); !slots_.empty(); slot = after(slot))
      if (slots_[slot] == kNone || keys_[slots_[slot]] == key) return slots_[slot];
    return kNone;
  }

  /// Adds the next copy, counted from 0. The table must not have a copy of `key`.
  void add(const StorageVersion& key) {
    if (2 * ++live_ > slots_.size()) grow();
    keys_.push_back(key);
    place(static_cast<CopyId>(keys_.size() - 1));
  }

  /// Removes the copy, which must be in the table.
  void remove(CopyId copy) {
    std::size_t hole = home_of(keys_[copy]);
    while (slots_[hole] != copy) hole = after(hole);
    for (std::size_t slot = after(hole); slots_[slot] != kNone; slot = after(slot)) {
      const std::size_t home = home_of(keys_[slots_[slot]]);
      if (distance(home, slot) < distance(hole, slot)) continue;  // a lookup would not find it in the hole
      slots_[hole] = slots_[slot];
      hole = slot;
    }
    slots_[hole] = kNone;
    --live_;
  }

 private:
  static constexpr std::size_t kFewestSlots = 64;

  /// Most storages are numbered one after the other, so they occupy neighbouring slots.
  std::size_t home_of(const StorageVersion& key) const {
    constexpr std::size_t kVersionStride = 0x9E3779B1;  // odd, and far from a multiple of any table's size
    return (static_cast<std::size_t>(key.storage) + key.version * kVersionStride) & (slots_.size() - 1);
  }
  std::size_t after(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  std::size_t distance(std::size_t from, std::size_t to) const { return (to - from) & (slots_.size() - 1); }

  void place(CopyId copy) {
    std::size_t slot = home_of(keys_[copy]);
    while (slots_[slot] != kNone) slot = after(slot);
    slots_[slot] = copy;
  }

  void grow() {
    const std::vector<CopyId> before = slots_;
    slots_.assign(before.empty() ? kFewestSlots : 2 * before.size(), kNone);
    for (const CopyId copy : before)
      if (copy != kNone) place(copy);
  }

  std::vector<StorageVersion> keys_;  ///< by copy, including the removed ones
  std::vector<CopyId> slots_;         ///< size is a power of two; kNone: the slot is free
  std::size_t live_ = 0;
};

}  // namespace offprof

#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include "traces/units.h"

namespace offprof {

/// Where the address ranges of PyTorch's expandable segments begin. Its snapshots name the mapped pieces
/// only; what tells ranges apart is the order in which memory is mapped: the allocator maps a new range from
/// its begin, and gives a range up when nothing in it is mapped any more.
class ExpandableRanges {
 public:
  /// A range is an eighth larger than the device's memory (find_expandable_block in LibTorch's
  /// c10/cuda/CUDACachingAllocator.cpp), rounded up to granules; its last granule begins below that.
  explicit ExpandableRanges(Bytes device_bytes)
      : reach_(static_cast<std::uintptr_t>(device_bytes + device_bytes / 8)) {}

  void map(std::uintptr_t address, Bytes bytes) {
    const auto range = find(address);
    if (range == mapped_.end()) {
      mapped_.emplace(address, bytes);
    } else {
      range->second += bytes;
    }
  }

  void unmap(std::uintptr_t address, Bytes bytes) {
    const auto range = find(address);
    if (range == mapped_.end()) return;  // older than these records
    range->second -= bytes;
    if (range->second <= 0) mapped_.erase(range);
  }

  /// Of the range in which the address lies; nullopt: in none that is known.
  std::optional<std::uintptr_t> begin_of(std::uintptr_t address) const {
    const auto range = find(address);
    return range == mapped_.end() ? std::nullopt : std::optional(range->first);
  }

 private:
  using Mapped = std::map<std::uintptr_t, Bytes>;  ///< how much of each range is, by its begin

  template <typename Self>
  static auto find_in(Self& mapped, std::uintptr_t address, std::uintptr_t reach) {
    const auto behind = mapped.upper_bound(address);
    if (behind == mapped.begin()) return mapped.end();
    const auto range = std::prev(behind);
    return address - range->first < reach ? range : mapped.end();
  }
  Mapped::iterator find(std::uintptr_t address) { return find_in(mapped_, address, reach_); }
  Mapped::const_iterator find(std::uintptr_t address) const { return find_in(mapped_, address, reach_); }

  std::uintptr_t reach_;
  Mapped mapped_;
};

}  // namespace offprof

#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include "traces/base/units.h"

namespace offprof {

/// Finds the begin of the address ranges of PyTorch's expandable segments. PyTorch's snapshots contain only
/// the mapped pieces. The order of mapping distinguishes the ranges: the allocator maps a new range from its
/// begin, and frees a range when nothing in it is mapped any more.
class ExpandableRanges {
 public:
  /// A range is an eighth larger than the device's memory (find_expandable_block in LibTorch's
  /// c10/cuda/CUDACachingAllocator.cpp), rounded up to granules; its last granule begins below that size.
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
    if (range == mapped_.end()) return;  // mapped before these records began
    range->second -= bytes;
    if (range->second <= 0) mapped_.erase(range);
  }

  /// Returns the begin of the range that contains the address; nullopt if no known range does.
  std::optional<std::uintptr_t> begin_of(std::uintptr_t address) const {
    const auto range = find(address);
    return range == mapped_.end() ? std::nullopt : std::optional(range->first);
  }

 private:
  using Mapped = std::map<std::uintptr_t, Bytes>;  ///< mapped bytes of each range, by its begin

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

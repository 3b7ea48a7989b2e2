#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "engine/devices/virtual_gpu/races/stream_sites.h"
#include "engine/devices/virtual_gpu/races/vector_clock.h"

namespace offprof {

/// Addresses from `begin` up to, but not including, `end`.
struct AddressSpan {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool overlaps(AddressSpan other) const { return begin < other.end && other.begin < end; }
  bool contains(AddressSpan other) const { return begin <= other.begin && other.end <= end; }
};

/// One end of a copy, or a memset.
struct CopyAccess {
  AddressSpan range;
  bool writes = false;
  StreamPoint point;
  StreamSite site;
  std::uint64_t piece = 0;   ///< number of the pinned memory's hand-out that contains it; 0: none
  bool is_reported = false;  ///< its block was freed or handed out under it
};

/// Accesses by address, in classes of similar length, so that a search for overlaps goes back no further than
/// the class's longest access.
class CopyAccesses {
 public:
  void add(const CopyAccess& access);

  /// Calls `keeps` for each access that overlaps `range`, and forgets the access if it returns false. `keeps`
  /// may change everything of the access but its range.
  template <typename Keeps>
  void filter(AddressSpan range, Keeps keeps);

  /// Forgets the accesses that the clock covers.
  void forget_below(const VectorClock& clock);

  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kLengthClasses = 64;
  using Class = std::multimap<std::uintptr_t, CopyAccess>;

  /// `classes_[index]` holds the accesses whose length is at most 1 << index bytes and more than half of
  /// that.
  std::array<Class, kLengthClasses> classes_;
  std::size_t size_ = 0;
};

template <typename Keeps>
void CopyAccesses::filter(AddressSpan range, Keeps keeps) {
  for (std::size_t i = 0; i < kLengthClasses; ++i) {
    Class& accesses = classes_[i];
    if (accesses.empty()) continue;
    const std::uintptr_t reach = std::uintptr_t{1} << i;
    auto at = accesses.lower_bound(range.begin > reach ? range.begin - reach : 0);
    while (at != accesses.end() && at->first < range.end) {
      const bool stays = !at->second.range.overlaps(range) || keeps(at->second);
      if (!stays) --size_;
      at = stays ? std::next(at) : accesses.erase(at);
    }
  }
}

}  // namespace offprof

#include "engine/devices/virtual_gpu/races/copy_accesses.h"

#include <bit>

namespace offprof {

void CopyAccesses::add(const CopyAccess& access) {
  const std::uintptr_t bytes = access.range.end - access.range.begin;
  const auto index = static_cast<std::size_t>(std::bit_width(bytes - 1));
  classes_[index].emplace(access.range.begin, access);
  ++size_;
}

void CopyAccesses::forget_below(const VectorClock& clock) {
  for (Class& accesses : classes_) {
    size_ -= std::erase_if(accesses, [&](const auto& entry) { return clock.covers(entry.second.point); });
  }
}

}  // namespace offprof

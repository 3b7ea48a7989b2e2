#include "engine/storage/free_list.h"

#include <algorithm>
#include <iterator>

#include "traces/base/check.h"

namespace offprof {

std::optional<Bytes> FreeList::take(Bytes bytes) {
  const auto found =
      std::ranges::find_if(stretches_, [&](const auto& entry) { return entry.second >= bytes; });
  if (found == stretches_.end()) return std::nullopt;
  const auto [offset, stretch_bytes] = *found;
  stretches_.erase(found);
  if (stretch_bytes > bytes) stretches_.emplace(offset + bytes, stretch_bytes - bytes);
  free_bytes_ -= bytes;
  return offset;
}

void FreeList::give(Bytes offset, Bytes bytes) {
  free_bytes_ += bytes;
  auto next = stretches_.lower_bound(offset);
  OFFPROF_CHECK(next == stretches_.end() || next->first >= offset + bytes);
  if (next != stretches_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = stretches_.erase(next);
  }
  if (next != stretches_.begin()) {
    const auto before = std::prev(next);
    OFFPROF_CHECK(before->first + before->second <= offset);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  stretches_.emplace_hint(next, offset, bytes);
}

Bytes FreeList::free_before(Bytes end) const {
  const auto next = stretches_.lower_bound(end);
  if (next == stretches_.begin()) return 0;
  const auto& [offset, bytes] = *std::prev(next);
  return offset + bytes == end ? bytes : 0;
}

Bytes FreeList::largest_bytes() const {
  Bytes largest = 0;
  for (const auto& [offset, bytes] : stretches_) largest = std::max(largest, bytes);
  return largest;
}

}  // namespace offprof

#pragma once

#include <map>
#include <optional>

#include "traces/base/units.h"

namespace offprof {

/// Free ranges of a file; neighbours are joined. It allocates the lowest range that is large enough (first
/// fit), so the same calls get the same ranges.
class FreeList {
 public:
  /// Takes a range of `bytes` and returns its offset; nullopt if no range is large enough.
  std::optional<Bytes> take(Bytes bytes);
  void give(Bytes offset, Bytes bytes);

  /// Returns the size of the free range that ends at `end`; 0 if there is none.
  Bytes free_before(Bytes end) const;
  Bytes free_bytes() const { return free_bytes_; }
  Bytes largest_bytes() const;

 private:
  std::map<Bytes, Bytes> stretches_;  ///< size by offset; no two ranges touch
  Bytes free_bytes_ = 0;
};

}  // namespace offprof

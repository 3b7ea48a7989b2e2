#pragma once

#include <map>
#include <optional>

#include "traces/units.h"

namespace offprof {

/// Free stretches of a file, neighbours joined. First fit: the lowest place that is large enough, so that the
/// same calls get the same places.
class FreeList {
 public:
  /// The place of `bytes`, no longer free; nullopt where no stretch is large enough.
  std::optional<Bytes> take(Bytes bytes);
  void give(Bytes offset, Bytes bytes);

  /// Of the stretch that ends at `end`; 0: there is none.
  Bytes free_before(Bytes end) const;
  Bytes free_bytes() const { return free_bytes_; }
  Bytes largest_bytes() const;

 private:
  std::map<Bytes, Bytes> stretches_;  ///< bytes by offset; none touches another
  Bytes free_bytes_ = 0;
};

}  // namespace offprof

#pragma once

#include <functional>
#include <map>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Contents of device memory that the host knows, in small pieces: a copy or a memset has brought them, and
/// no kernel has run since that may have changed them. All other device memory has no contents. Programs need
/// such values for decisions: sizes and indices that ranks tell each other. Not thread-safe.
class SmallValues {
 public:
  /// The largest piece. As much is copied at once from pageable memory without a wait (CUDA Runtime API, "API
  /// synchronization behavior"), so it is what CUDA itself takes for small.
  static constexpr Bytes kLargest = 64 * kKiB;
  /// All pieces together; beyond it everything is forgotten.
  static constexpr Bytes kLargestSum = 16 * kMiB;

  /// Sets the contents of `bytes` of device memory to those of host memory, or to copies of one byte. If it
  /// is more than kLargest, forgets them.
  void write(const void* to, const void* host, Bytes bytes);
  void fill(const void* to, int value, Bytes bytes);
  /// Sets the contents to those that `contents` returns, which is called when they are read; it returns an
  /// empty vector if they are unknown.
  void write_later(const void* to, Bytes bytes, std::function<std::vector<char>()> contents);
  /// Sets the contents of memory that no kernel changes as long as it is allocated: from `to`, until
  /// forget_block, or until something else is written there.
  void keep(const void* to, std::vector<char> contents);
  void forget_block(const void* block) { kept_.erase(static_cast<const char*>(block)); }
  /// Copies within the device. Forgets the target if some of the source is unknown.
  void copy(const void* to, const void* from, Bytes bytes);
  /// Returns the contents; an empty vector if some of them are unknown.
  std::vector<char> read(const void* from, Bytes bytes);

  void forget(const void* from, Bytes bytes);
  void forget_all();

 private:
  struct Later {
    Bytes bytes = 0;
    std::function<std::vector<char>()> contents;
  };

  std::vector<char> read_kept(const char* from, Bytes bytes) const;
  void forget_kept(const char* from, Bytes bytes);
  /// Returns the first piece of `later_` that overlaps the memory, or its end.
  std::map<const char*, Later>::iterator overlapping(const char* from, Bytes bytes);

  std::map<const char*, Later> later_;               ///< by address; none overlap, nor with pieces_
  std::map<const char*, std::vector<char>> pieces_;  ///< by address; none overlap
  std::map<const char*, std::vector<char>> kept_;    ///< by address: see keep
  Bytes sum_ = 0;
};

}  // namespace offprof

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Contents of device memory that the host knows, in small pieces. All other device memory has no contents.
/// Programs need such values for decisions: sizes and indices that ranks tell each other. Not thread-safe.
class SmallValues {
 public:
  /// How long contents are known, unless something else is written there or the memory is freed.
  enum class Known : std::uint8_t {
    kUntilKernel,  ///< until a kernel runs, which may have changed them
    /// until a kernel runs outside of operators: what operators write is forgotten by their results, see
    /// GpuValues
    kUntilWritten,
  };

  /// The largest piece. As much is copied at once from pageable memory without a wait (CUDA Runtime API, "API
  /// synchronization behavior"), so it is what CUDA itself takes for small.
  static constexpr Bytes kLargest = 64 * kKiB;
  /// All pieces together; beyond it everything is forgotten.
  static constexpr Bytes kLargestSum = 16 * kMiB;

  /// Sets the contents of `bytes` of device memory to those of host memory, or to copies of one byte. If it
  /// is more than kLargest, forgets them.
  void write(const void* to, const void* host, Bytes bytes, Known known = Known::kUntilKernel);
  void fill(const void* to, int value, Bytes bytes);
  /// Sets the contents to those that `contents` returns, which is called when they are read; it returns an
  /// empty vector if they are unknown. They are known until something is written there.
  void write_later(const void* to, Bytes bytes, std::function<std::vector<char>()> contents);
  /// Copies within the device. Forgets the target if some of the source is unknown.
  void copy(const void* to, const void* from, Bytes bytes, Known known = Known::kUntilKernel);
  /// Returns the contents; an empty vector if some of them are unknown. Throws what the function of
  /// write_later does, each time.
  std::vector<char> read(const void* from, Bytes bytes);

  void forget(const void* from, Bytes bytes);
  /// Forgets what is known until a kernel runs.
  void forget_at_kernel();
  void forget_all();

 private:
  struct Piece {
    std::vector<char> contents;
    Known known = Known::kUntilKernel;
  };
  struct Later {
    Bytes bytes = 0;
    std::function<std::vector<char>()> contents;
  };

  /// Returns the first piece of `later_` that overlaps the memory, or its end.
  std::map<const char*, Later>::iterator overlapping(const char* from, Bytes bytes);

  std::map<const char*, Later> later_;   ///< by address; none overlap, nor with pieces_
  std::map<const char*, Piece> pieces_;  ///< by address; none overlap
  bool forgets_at_kernel_ = false;       ///< some pieces may be known only until a kernel runs
  Bytes sum_ = 0;
};

}  // namespace offprof

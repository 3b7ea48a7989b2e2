#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "engine/copies/aligned_buffer.h"
#include "traces/base/units.h"

namespace offprof {

/// Host memory for offloaded tensors. Freed buffers are kept for the next request of the same size. Training
/// requests the same sizes in each step, so only the first step allocates. Used by one thread.
class HostPool {
 public:
  explicit HostPool(Bytes cap_bytes = std::numeric_limits<Bytes>::max()) : cap_bytes_(cap_bytes) {}
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  /// Returns a buffer of at least `bytes`, owned by the pool until `free`. Throws Error (environment) if the
  /// cap or the machine has no room; before that the pool frees the buffers not in use.
  std::byte* allocate(Bytes bytes);
  void free(std::byte* buffer, Bytes bytes);
  /// Sets the cap. Frees the buffers not in use if the reserved bytes exceed the new cap.
  void set_cap(Bytes cap_bytes);

  Bytes used_bytes() const { return used_bytes_; }  ///< as requested
  /// Maximum of used_bytes since the last reset_peak.
  Bytes peak_bytes() const { return peak_bytes_; }
  Bytes reserved_bytes() const { return reserved_bytes_; }  ///< allocated from the machine
  void reset_peak() { peak_bytes_ = used_bytes_; }

 private:
  using Buffer = AlignedBuffer;

  Buffer reserve(Bytes bytes);  ///< null: neither the cap nor the machine has room
  void trim();

  Bytes cap_bytes_;
  std::map<Bytes, std::vector<Buffer>> free_;  ///< by size
  Bytes used_bytes_ = 0, peak_bytes_ = 0, reserved_bytes_ = 0;
};

}  // namespace offprof

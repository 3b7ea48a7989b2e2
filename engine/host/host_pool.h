#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "engine/host/aligned_buffer.h"
#include "traces/units.h"

namespace offprof {

/// Host memory for offloaded tensors. Buffers are kept for the next request of the same size, since training
/// asks for the same sizes step after step; so a step allocates nothing after the first. Used by one thread.
class HostPool {
 public:
  explicit HostPool(Bytes cap_bytes = std::numeric_limits<Bytes>::max()) : cap_bytes_(cap_bytes) {}
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  /// A buffer of at least `bytes`, owned by the pool until `free`. Throws Error (environment) where the cap,
  /// or the machine, has no room; buffers not in use are given back to the machine before that.
  std::byte* allocate(Bytes bytes);
  void free(std::byte* buffer, Bytes bytes);
  /// Gives buffers not in use back to the machine, so that what was reserved before does not exceed the new
  /// cap.
  void set_cap(Bytes cap_bytes);

  Bytes used_bytes() const { return used_bytes_; }          ///< as requested
  Bytes peak_bytes() const { return peak_bytes_; }          ///< of used_bytes, since the last reset_peak
  Bytes reserved_bytes() const { return reserved_bytes_; }  ///< held from the machine
  void reset_peak() { peak_bytes_ = used_bytes_; }

 private:
  using Buffer = AlignedBuffer;

  Buffer reserve(Bytes bytes);  ///< null: the cap or the machine has no room
  void trim();

  Bytes cap_bytes_;
  std::map<Bytes, std::vector<Buffer>> free_;  ///< by size
  Bytes used_bytes_ = 0, peak_bytes_ = 0, reserved_bytes_ = 0;
};

}  // namespace offprof

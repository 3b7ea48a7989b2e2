#include "engine/copies/host_pool.h"

#include <algorithm>
#include <new>

#include "traces/base/error.h"

namespace offprof {

std::byte* HostPool::allocate(Bytes bytes) {
  Buffer buffer;
  const auto found = free_.find(bytes);
  if (found != free_.end() && !found->second.empty()) {
    buffer = std::move(found->second.back());
    found->second.pop_back();
  } else {
    buffer = reserve(bytes);
    if (!buffer) {
      trim();
      buffer = reserve(bytes);
    }
    if (!buffer)
      throw environment_error("host memory for offloaded tensors is exhausted: " + format_bytes(bytes) +
                                  " requested, " + format_bytes(used_bytes_) + " in use",
                              "raise --host-memory, or offload less with a larger --threshold");
  }
  used_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return buffer.release();
}

void HostPool::free(std::byte* buffer, Bytes bytes) {
  free_[bytes].emplace_back(buffer);
  used_bytes_ -= bytes;
}

HostPool::Buffer HostPool::reserve(Bytes bytes) {
  if (bytes > cap_bytes_ - reserved_bytes_) return nullptr;
  Buffer buffer = make_aligned_buffer(bytes);
  if (buffer) reserved_bytes_ += bytes;
  return buffer;
}

void HostPool::set_cap(Bytes cap_bytes) {
  cap_bytes_ = cap_bytes;
  // Trim only if needed: memory that returns to the heap comes back at another place and changes the layout.
  if (reserved_bytes_ > cap_bytes_) trim();
}

void HostPool::trim() {
  for (auto& [bytes, buffers] : free_) reserved_bytes_ -= bytes * static_cast<Bytes>(buffers.size());
  free_.clear();
}

}  // namespace offprof

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <mutex>
#include <vector>

namespace offprof {

/// Timed CUDA events, owned by the pool and reused. Any thread may record at any time.
class EventPool {
 public:
  EventPool() = default;
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  /// Returns an event that is recorded on the stream. Throws Error (environment).
  cudaEvent_t record(cudaStream_t stream);
  /// Makes all events available for reuse. The device must be idle, and nobody may ask for their times later.
  void reuse_all() { used_ = 0; }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> events_;
  std::size_t used_ = 0;
};

}  // namespace offprof

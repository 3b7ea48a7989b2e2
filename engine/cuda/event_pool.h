#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <mutex>
#include <vector>

namespace offprof {

/// CUDA events with times, made once and used again. Owns them. Any thread may record at any time.
class EventPool {
 public:
  EventPool() = default;
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  /// An event, recorded on the stream. Throws Error (environment).
  cudaEvent_t record(cudaStream_t stream);
  /// All events may be recorded anew: the device must be idle, and nobody may ask for their times any more.
  void reuse_all() { used_ = 0; }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> events_;
  std::size_t used_ = 0;
};

}  // namespace offprof

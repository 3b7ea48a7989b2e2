#include "engine/devices/cuda/event_pool.h"

#include "engine/devices/cuda/cuda_call.h"

namespace offprof {

EventPool::~EventPool() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

cudaEvent_t EventPool::record(cudaStream_t stream) {
  const std::lock_guard turn(mutex_);
  if (used_ == events_.size()) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDefault), "create an event");
    events_.push_back(event);
  }
  cudaEvent_t event = events_[used_++];
  check_cuda(cudaEventRecord(event, stream), "record an event");
  return event;
}

}  // namespace offprof

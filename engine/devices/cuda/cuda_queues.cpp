#include "engine/devices/cuda/cuda_queues.h"

#include "engine/devices/cuda/cuda_call.h"
#include "engine/devices/cuda/cuda_gate.h"
#include "engine/devices/cuda/on_device.h"

namespace offprof {
namespace {

using HostFunction = std::function<void()>;

void CUDART_CB call_once(void* work) {
  (*std::unique_ptr<HostFunction>(static_cast<HostFunction*>(work)))();
}

}  // namespace

class CudaQueues::Point final : public QueuePoint {
 public:
  explicit Point(const CudaQueues& queues) : queues_(queues) {
    // A thread that waits for a disk leaves its core to other threads.
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync),
               "create an event");
  }
  ~Point() override { cudaEventDestroy(event_); }
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  /// Sets the point to the current end of the stream.
  void set(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "record an event"); }
  void wait() override { check_cuda(cudaEventSynchronize(event_), "finish the copies to the disk"); }
  void hold(CopyQueue queue) override {
    const OnDevice here(static_cast<c10::DeviceIndex>(queues_.device_));
    check_cuda(cudaStreamWaitEvent(queues_.stream_of(queue), event_, 0), "make a stream wait for an event");
  }

 private:
  const CudaQueues& queues_;
  cudaEvent_t event_ = nullptr;
};

CudaQueues::CudaQueues(cudaStream_t compute, const std::array<cudaStream_t, 2>& copies, cudaStream_t beside,
                       int device, OnDeviceClock on_device_clock)
    : compute_(compute),
      copies_(copies),
      beside_(beside),
      device_(device),
      on_device_clock_(std::move(on_device_clock)) {
  check_cuda(cudaEventCreateWithFlags(&compute_event_, cudaEventDisableTiming), "create an event");
}

CudaQueues::~CudaQueues() {
  cudaEventDestroy(compute_event_);
}

std::unique_ptr<QueuePoint> CudaQueues::call_on(cudaStream_t stream, HostFunction work) {
  const OnDevice here(static_cast<c10::DeviceIndex>(device_));
  auto point = std::make_unique<Point>(*this);
  auto owned = std::make_unique<HostFunction>(std::move(work));
  check_cuda(cudaLaunchHostFunc(stream, call_once, owned.get()), "queue a host function");
  owned.release();  // CUDA owns it now
  try {
    point->set(stream);
  } catch (const Error&) {
    cudaStreamSynchronize(stream);  // nobody else could wait for it
    throw;
  }
  return point;
}

std::unique_ptr<QueuePoint> CudaQueues::call_beside_compute(HostFunction work) {
  const OnDevice here(static_cast<c10::DeviceIndex>(device_));
  check_cuda(cudaEventRecord(compute_event_, compute_), "record an event");
  check_cuda(cudaStreamWaitEvent(beside_, compute_event_, 0), "make a stream wait for an event");
  return call_on(beside_, std::move(work));
}

std::unique_ptr<QueueGate> CudaQueues::make_gate() {
  const OnDevice here(static_cast<c10::DeviceIndex>(device_));
  return CudaGate::make(copies_);
}

void CudaQueues::finish_calls() {
  for (const cudaStream_t stream : {copies_[0], copies_[1], beside_})
    check_cuda(cudaStreamSynchronize(stream), "finish the copies to the disk");
}

}  // namespace offprof

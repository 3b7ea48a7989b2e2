#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "engine/devices/disk/tiered_device_disk.h"
#include "traces/base/units.h"

namespace offprof {

/// Streams of a GPU. CUDA calls the work on a thread of its own. It may use one thread for all streams, so
/// work of one stream is delayed while work of another stream waits for the disk. With a gate no work waits
/// for the disk. Without a gate this costs time but never deadlocks: no work waits for other work.
class CudaQueues final : public DeviceQueues {
 public:
  /// Converts a time of steady_now to the device's clock.
  using OnDeviceClock = std::function<Nanoseconds(Nanoseconds)>;

  /// The streams belong to GPU `device`. `copies`: by CopyQueue; `beside` must be otherwise unused. Throws
  /// Error (environment).
  CudaQueues(cudaStream_t compute, const std::array<cudaStream_t, 2>& copies, cudaStream_t beside, int device,
             OnDeviceClock on_device_clock);
  ~CudaQueues() override;
  CudaQueues(const CudaQueues&) = delete;
  CudaQueues& operator=(const CudaQueues&) = delete;

  std::unique_ptr<QueuePoint> call(CopyQueue queue, std::function<void()> work) override {
    return call_on(stream_of(queue), std::move(work));
  }
  std::unique_ptr<QueuePoint> call_beside_compute(std::function<void()> work) override;
  /// Returns nullptr if the driver has no cuStreamWaitValue32.
  std::unique_ptr<QueueGate> make_gate() override;
  void finish_calls() override;
  Nanoseconds on_device_clock(Nanoseconds steady) const override { return on_device_clock_(steady); }

 private:
  class Point;

  cudaStream_t stream_of(CopyQueue queue) const { return copies_[static_cast<std::size_t>(queue)]; }
  std::unique_ptr<QueuePoint> call_on(cudaStream_t stream, std::function<void()> work);

  cudaStream_t compute_;
  std::array<cudaStream_t, 2> copies_;
  cudaStream_t beside_;
  int device_;
  OnDeviceClock on_device_clock_;
  cudaEvent_t compute_event_ = nullptr;  ///< recorded anew for each wait; a wait keeps the point it was given
};

}  // namespace offprof

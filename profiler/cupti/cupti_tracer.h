#pragma once

#include <cstddef>
#include <vector>

#include "profiler/cupti/activity_reader.h"
#include "profiler/cupti/buffer_pool.h"
#include "profiler/cupti/gpu_tracer.h"
#include "profiler/cupti/library.h"

namespace offprof {

/// How much of what happens fits between two drains: the default is enough for some 300 000 kernels.
struct TraceBuffers {
  std::size_t count = 32;
  std::size_t bytes_each = std::size_t{4} << 20U;
};

/// Records by CUPTI's activity interface. One in a process: CUPTI serves one subscriber.
///
/// To be made before the program's first CUDA call: CUPTI then keeps its own buffers in pinned host memory,
/// out of the device memory that is measured.
class CuptiTracer final : public GpuTracer {
 public:
  /// Throws Error (environment) where CUPTI does not work here, with what helps. `cupti` must outlive it.
  explicit CuptiTracer(const CuptiFunctions& cupti, TraceBuffers buffers = {});
  ~CuptiTracer() override;
  CuptiTracer(const CuptiTracer&) = delete;
  CuptiTracer& operator=(const CuptiTracer&) = delete;

  TracerInfo info() const override;
  void begin(TraceDetail detail) override;
  void drain() override;
  GpuActivity end() override;
  void push(std::uint64_t id) override;
  void pop() override;

 private:
  void subscribe();
  void set_attributes() const;
  void require(CUptiResult result, const char* what) const;
  void disable();

  const CuptiFunctions& cupti_;
  std::size_t buffer_bytes_;
  BufferPool pool_;
  ActivityReader reader_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::vector<CUpti_ActivityKind> enabled_;
  bool has_causes_ = false;  ///< push and pop are of use
};

}  // namespace offprof

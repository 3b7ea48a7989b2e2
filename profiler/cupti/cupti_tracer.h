#pragma once

#include <cstddef>
#include <vector>

#include "profiler/cupti/activity_reader.h"
#include "profiler/cupti/buffer_pool.h"
#include "profiler/cupti/gpu_tracer.h"
#include "profiler/cupti/library.h"

namespace offprof {

/// Capacity for the records between two drains. The default is enough for some 300 000 kernels.
struct TraceBuffers {
  std::size_t count = 32;
  std::size_t bytes_each = std::size_t{4} << 20U;
};

/// Records through CUPTI's activity interface. One per process, since CUPTI serves one subscriber.
///
/// Create it before the first CUDA call. CUPTI then keeps its own buffers in pinned host memory, outside the
/// device memory that is measured.
class CuptiTracer final : public GpuTracer {
 public:
  /// Throws Error (environment) with a hint if CUPTI does not work here. `cupti` must outlive the tracer.
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
  bool has_causes_ = false;  ///< push and pop have an effect
};

}  // namespace offprof

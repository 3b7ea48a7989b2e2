#include <pthread.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>

#include "engine/devices/virtual_gpu/runtime/cudart.h"
#include "engine/devices/virtual_gpu/runtime/traced_call.h"

using namespace offprof;
using namespace offprof::runtime;

namespace offprof::runtime {

StreamId stream_of(cudaStream_t stream) {
  if (stream == cudaStreamLegacy) return nullptr;
  if (stream == cudaStreamPerThread) {
    thread_local const StreamId of_this_thread = gpu().streams().create_stream(StreamKind::kBlocking);
    return of_this_thread;
  }
  return stream;
}

}  // namespace offprof::runtime

namespace {

/// Priorities that streams were created with. They have no effect.
class Priorities {
 public:
  void set(cudaStream_t stream, int priority) {
    const std::lock_guard turn(mutex_);
    of_[stream] = priority;
  }
  void forget(cudaStream_t stream) {
    const std::lock_guard turn(mutex_);
    of_.erase(stream);
  }
  /// Returns the priority of the stream; 0, the default, if none was set.
  int of(cudaStream_t stream) {
    const std::lock_guard turn(mutex_);
    const auto found = of_.find(stream);
    return found == of_.end() ? 0 : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<cudaStream_t, int> of_;
};

/// Never destroyed, since streams are destroyed late.
Priorities& priorities() {
  static Priorities& priorities = *new Priorities;
  return priorities;
}

/// Returns true on a thread of ProcessGroupNCCL that only watches collectives. It looks at their events in
/// real time, so the virtual clocks must not depend on it.
bool is_watchdog() {
  thread_local const bool is_one = [] {
    constexpr std::size_t kLongestName = 16;  // of a thread, with the final zero: pthread_getname_np
    std::array<char, kLongestName> name = {};
    return pthread_getname_np(pthread_self(), name.data(), name.size()) == 0 &&
           std::string_view(name.data()).starts_with("pt_nccl_");
  }();
  return is_one;
}

cudaStream_t handle_of(StreamId stream) {
  return static_cast<cudaStream_t>(const_cast<void*>(stream));
}

bool is_default_stream(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

}  // namespace

extern "C" {

// Priorities have no effect, since streams do not slow each other down here.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  OFFPROF_TRACED_CALL(cudaStreamCreateWithPriority_v5050);
  const bool is_free = (flags & cudaStreamNonBlocking) != 0;
  *stream =
      handle_of(gpu().streams().create_stream(is_free ? StreamKind::kNonBlocking : StreamKind::kBlocking));
  priorities().set(*stream, std::clamp(priority, kGreatestPriority, 0));
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  OFFPROF_TRACED_CALL(cudaStreamCreateWithFlags_v5000);
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  OFFPROF_TRACED_CALL(cudaStreamCreate_v3020);
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  if (!is_default_stream(stream) && !gpu().streams().has_stream(stream))
    return noted(cudaErrorInvalidResourceHandle);
  *priority = priorities().of(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaStreamDestroy_v5050);
  if (is_default_stream(stream)) return noted(cudaErrorInvalidResourceHandle);
  priorities().forget(stream);
  return noted(gpu().streams().destroy_stream(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaStreamQuery_v3020);
  return noted(gpu().streams().query_stream(stream_of(stream)));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaStreamSynchronize_v3020);
  return noted(gpu().streams().synchronise_stream(stream_of(stream)));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  OFFPROF_TRACED_CALL(cudaStreamWaitEvent_v3020);
  return noted(gpu().streams().wait_event(stream_of(stream), event));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  OFFPROF_TRACED_CALL(cudaLaunchHostFunc_v10000);
  return noted(gpu().streams().call_host(stream_of(stream), [=] { function(user_data); }));
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data,
                                  unsigned) {
  OFFPROF_TRACED_CALL(cudaStreamAddCallback_v5000);
  return noted(
      gpu().streams().call_host(stream_of(stream), [=] { callback(stream, cudaSuccess, user_data); }));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  OFFPROF_TRACED_CALL(cudaEventCreateWithFlags_v3020);
  *event = static_cast<cudaEvent_t>(
      const_cast<void*>(gpu().streams().create_event((flags & cudaEventDisableTiming) == 0)));
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  OFFPROF_TRACED_CALL(cudaEventCreate_v3020);
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  OFFPROF_TRACED_CALL(cudaEventDestroy_v3020);
  return noted(gpu().streams().destroy_event(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaEventRecord_v3020);
  return noted(gpu().streams().record_event(event, stream_of(stream), __builtin_return_address(0)));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  OFFPROF_TRACED_CALL(cudaEventRecordWithFlags_v11010);
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (is_watchdog()) return noted(gpu().streams().peek_event(event));
  OFFPROF_TRACED_CALL(cudaEventQuery_v3020);
  return noted(gpu().streams().query_event(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  OFFPROF_TRACED_CALL(cudaEventSynchronize_v3020);
  return noted(gpu().streams().synchronise_event(event));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  OFFPROF_TRACED_CALL(cudaEventElapsedTime_v12080);
  Nanoseconds elapsed = 0;
  const cudaError_t error = noted(gpu().streams().elapsed_time(&elapsed, from, to));
  if (error == cudaSuccess) *milliseconds = static_cast<float>(static_cast<double>(elapsed) / 1e6);
  return error;
}

// CUDA graphs are not simulated, so no stream is ever capturing.
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  OFFPROF_TRACED_CALL(cudaStreamIsCapturing_v10000);
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long*,
                                     cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                     std::size_t*) {
  OFFPROF_TRACED_CALL(cudaStreamGetCaptureInfo_v12030);
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

// A watchdog calls it before it looks at a collective, and once it is done with it
// (CUDAStreamCaptureModeGuard).
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (is_watchdog()) gpu().streams().note_watchdog();
  OFFPROF_TRACED_CALL(cudaThreadExchangeStreamCaptureMode_v10010);
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  const cudaStreamCaptureMode before = current;
  current = *mode;
  *mode = before;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaGraphDestroy(cudaGraph_t) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, std::size_t*) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                         std::size_t*) {
  return noted(cudaErrorNotSupported);
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned) {
  return noted(cudaErrorNotSupported);
}

}  // extern "C"

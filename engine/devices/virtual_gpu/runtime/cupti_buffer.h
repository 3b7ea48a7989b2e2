#pragma once

#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace offprof {

/// Returns the size of a record of that kind in CUPTI 13.0; 0: no stand-in writes that kind.
inline std::size_t cupti_record_bytes(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_NAME:
      return sizeof(CUpti_ActivityName);
    default:
      return 0;
  }
}

/// cuptiActivityGetNextRecord for a buffer that CuptiBuffer filled.
inline CUptiResult next_cupti_record(std::uint8_t* buffer, std::size_t valid_bytes, CUpti_Activity** record) {
  std::uint8_t* const end = buffer + valid_bytes;
  std::uint8_t* next = buffer;
  if (*record != nullptr)
    next = reinterpret_cast<std::uint8_t*>(*record) + cupti_record_bytes((*record)->kind);
  if (next >= end) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  const std::size_t bytes = cupti_record_bytes((*record)->kind);
  return bytes == 0 || bytes > static_cast<std::size_t>(end - next) ? CUPTI_ERROR_INVALID_KIND
                                                                    : CUPTI_SUCCESS;
}

/// Buffer for the records of a CUPTI stand-in. It requests a buffer from the tracer when it has none, and
/// returns it when it is full. The tracer owns the buffers.
class CuptiBuffer {
 public:
  void set_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
    request_ = request;
    complete_ = complete;
  }
  /// Appends a record. Drops it if no buffer, or none large enough, can be had.
  void append(const void* record, std::size_t bytes) {
    if (buffer_ != nullptr && used_ + bytes > size_) hand_back();
    std::size_t most_records = 0;
    if (buffer_ == nullptr && request_ != nullptr) request_(&buffer_, &size_, &most_records);
    if (buffer_ == nullptr || bytes > size_) {
      ++dropped_;
      return;
    }
    std::memcpy(buffer_ + used_, record, bytes);
    used_ += bytes;
  }
  /// Removes the last `bytes` from the buffer.
  void cut(std::size_t bytes) { used_ -= bytes; }
  void hand_back() {
    if (buffer_ != nullptr && complete_ != nullptr) complete_(nullptr, 0, buffer_, size_, used_);
    forget();
  }
  /// Drops the reference to the current buffer, which a copy of this object now holds.
  void forget() {
    buffer_ = nullptr;
    used_ = 0;
  }
  /// Returns the number of records dropped since the last call.
  std::size_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  CUpti_BuffersCallbackRequestFunc request_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
  std::uint8_t* buffer_ = nullptr;
  std::size_t size_ = 0, used_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace offprof

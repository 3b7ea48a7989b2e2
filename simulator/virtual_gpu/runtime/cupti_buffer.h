#pragma once

#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace offprof {

/// The bytes of a record of that kind, as CUPTI 13.0 makes it; 0: a kind that no stand-in makes.
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

/// cuptiActivityGetNextRecord, of a buffer that CuptiBuffer filled.
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

/// Where what stands in for CUPTI puts its records: a buffer asked for when there is none, given back when it
/// is full. The buffers are those of who traces.
class CuptiBuffer {
 public:
  void set_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
    request_ = request;
    complete_ = complete;
  }
  /// Drops the record where no buffer can be had, or none so large.
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
  /// The last `bytes` put into it are not valid.
  void cut(std::size_t bytes) { used_ -= bytes; }
  void hand_back() {
    if (buffer_ != nullptr && complete_ != nullptr) complete_(nullptr, 0, buffer_, size_, used_);
    forget();
  }
  /// Leaves the buffer at hand to a copy of this object.
  void forget() {
    buffer_ = nullptr;
    used_ = 0;
  }
  /// Records since the last call.
  std::size_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  CUpti_BuffersCallbackRequestFunc request_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
  std::uint8_t* buffer_ = nullptr;
  std::size_t size_ = 0, used_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace offprof

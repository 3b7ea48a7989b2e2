#include "engine/host/counted_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace offprof {
namespace {

/// Large blocks come from the heap and stay there, so that a step does not pay for mapping and zeroing its
/// memory anew: a device's caching allocator does not either.
void keep_large_blocks_in_the_heap() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace

CountedAllocator& CountedAllocator::instance() {
  static auto* allocator = new CountedAllocator;  // outlives every tensor, static ones too
  return *allocator;
}

CountedAllocator& CountedAllocator::install() {
  keep_large_blocks_in_the_heap();
  constexpr std::uint8_t kAboveTheDefault = 1;
  c10::SetCPUAllocator(&instance(), kAboveTheDefault);
  return instance();
}

CountedAllocator::Header* CountedAllocator::header_of(void* data) {
  return reinterpret_cast<Header*>(static_cast<std::byte*>(data) - kHeaderBytes);
}

c10::DataPtr CountedAllocator::allocate(std::size_t bytes) {
  const c10::Device cpu(c10::kCPU);
  if (bytes == 0) return {nullptr, nullptr, &CountedAllocator::free, cpu};
  const std::lock_guard lock(mutex_);
  if (capacity_ && static_cast<Bytes>(bytes) > *capacity_ - live_bytes_) refuse(static_cast<Bytes>(bytes));
  void* block = nullptr;
  if (posix_memalign(&block, kHeaderBytes, bytes + kHeaderBytes) != 0) refuse(static_cast<Bytes>(bytes));
  void* data = static_cast<std::byte*>(block) + kHeaderBytes;
  *header_of(data) = {next_id_++, static_cast<Bytes>(bytes)};
  live_bytes_ += static_cast<Bytes>(bytes);
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  if (listener_ != nullptr) listener_->on_alloc(header_of(data)->id, static_cast<Bytes>(bytes));
  return {data, data, &CountedAllocator::free, cpu};
}

void CountedAllocator::refuse(Bytes bytes) {
  out_of_memory_ = {bytes, live_bytes_, capacity_};
  TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", bytes, " bytes asked for, ", live_bytes_,
                   " live");
  std::abort();  // not reached: the check throws
}

std::optional<OutOfMemory> CountedAllocator::take_out_of_memory() {
  const std::lock_guard lock(mutex_);
  return std::exchange(out_of_memory_, std::nullopt);
}

void CountedAllocator::free(void* data) {
  if (data == nullptr) return;
  instance().forget(*header_of(data));
  std::free(header_of(data));
}

void CountedAllocator::forget(const Header& header) {
  const std::lock_guard lock(mutex_);
  live_bytes_ -= header.bytes;
  if (listener_ != nullptr) listener_->on_free(header.id, header.bytes);
}

c10::DeleterFnPtr CountedAllocator::raw_deleter() const {
  return &CountedAllocator::free;
}

void CountedAllocator::copy_data(void* to, const void* from, std::size_t count) const {
  default_copy_data(to, from, count);
}

std::optional<AllocationId> CountedAllocator::id_of(const c10::Storage& storage) const {
  const c10::DataPtr& data = storage.data_ptr();
  if (data.get() == nullptr || data.get_deleter() != &CountedAllocator::free) return std::nullopt;
  return header_of(data.get_context())->id;
}

AllocationId CountedAllocator::next_id() const {
  const std::lock_guard lock(mutex_);
  return next_id_;
}

Bytes CountedAllocator::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}

Bytes CountedAllocator::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void CountedAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = live_bytes_;
}

void CountedAllocator::set_capacity(std::optional<Bytes> bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
}

void CountedAllocator::set_listener(AllocationListener* listener) {
  const std::lock_guard lock(mutex_);
  listener_ = listener;
}

}  // namespace offprof

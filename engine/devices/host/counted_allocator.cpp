#include "engine/devices/host/counted_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace offprof {
namespace {

/// Makes large blocks come from the heap and stay there, so that a step does not pay again for mapping and
/// zeroing its memory. The caching allocator of a device does not pay for it either.
void keep_large_blocks_in_the_heap() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

/// Minimum size of a block that is kept. The heap itself reuses smaller ones quickly.
constexpr Bytes kLeastKept = 4 * kKiB;

}  // namespace

CountedAllocator& CountedAllocator::instance() {
  static auto* allocator = new CountedAllocator;  // outlives every tensor, even static ones
  return *allocator;
}

CountedAllocator& CountedAllocator::install() {
  keep_large_blocks_in_the_heap();
  survive_forks();
  constexpr std::uint8_t kAboveTheDefault = 1;
  c10::SetCPUAllocator(&instance(), kAboveTheDefault);
  return instance();
}

/// Holds the lock while the process forks, so that it is free in the child whatever other threads do.
void CountedAllocator::survive_forks() {
  static const int kRegistered =
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().mutex_.unlock(); });
  (void)kRegistered;
}

CountedAllocator::Header* CountedAllocator::header_of(void* data) {
  return reinterpret_cast<Header*>(static_cast<std::byte*>(data) - kHeaderBytes);
}

c10::DataPtr CountedAllocator::allocate(std::size_t bytes) {
  const c10::Device cpu(c10::kCPU);
  if (bytes == 0) return {nullptr, nullptr, &CountedAllocator::free, cpu};
  const std::lock_guard lock(mutex_);
  if (capacity_ && static_cast<Bytes>(bytes) > *capacity_ - live_bytes_) refuse(static_cast<Bytes>(bytes));
  void* block = take_block(static_cast<Bytes>(bytes));
  if (block == nullptr) refuse(static_cast<Bytes>(bytes));
  void* data = static_cast<std::byte*>(block) + kHeaderBytes;
  *header_of(data) = {next_id_++, static_cast<Bytes>(bytes)};
  live_bytes_ += static_cast<Bytes>(bytes);
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  most_live_bytes_ = std::max(most_live_bytes_, live_bytes_);
  if (listener_ != nullptr)
    listener_->on_alloc(header_of(data)->id, static_cast<Bytes>(bytes), kComputeStream);
  return {data, data, &CountedAllocator::free, cpu};
}

void CountedAllocator::refuse(Bytes bytes) {
  out_of_memory_ = {bytes, live_bytes_, capacity_};
  TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", bytes, " bytes requested, ", live_bytes_,
                   " live");
  std::abort();  // not reached: the check throws
}

std::optional<OutOfMemory> CountedAllocator::take_out_of_memory() {
  const std::lock_guard lock(mutex_);
  return std::exchange(out_of_memory_, std::nullopt);
}

void CountedAllocator::free(void* data) {
  if (data == nullptr) return;
  instance().take_back(data);
}

void CountedAllocator::take_back(void* data) {
  const std::lock_guard lock(mutex_);
  const Header header = *header_of(data);
  live_bytes_ -= header.bytes;
  if (listener_ != nullptr) listener_->on_free(header.id, header.bytes, kComputeStream);
  if (header.bytes < kLeastKept || kept_bytes_ + header.bytes > most_live_bytes_)
    return std::free(header_of(data));
  kept_[header.bytes].push_back(header_of(data));
  kept_bytes_ += header.bytes;
}

/// Returns nullptr if the machine has no memory left.
void* CountedAllocator::take_block(Bytes bytes) {
  if (const auto kept = kept_.find(bytes); kept != kept_.end() && !kept->second.empty()) {
    void* const block = kept->second.back();
    kept->second.pop_back();
    kept_bytes_ -= bytes;
    return block;
  }
  const auto from_heap = [&] {
    void* block = nullptr;
    const auto whole = static_cast<std::size_t>(bytes) + kHeaderBytes;
    return posix_memalign(&block, kHeaderBytes, whole) == 0 ? block : nullptr;
  };
  if (void* const block = from_heap()) return block;
  release_kept();
  return from_heap();
}

void CountedAllocator::release_kept() {
  for (auto& [bytes, blocks] : kept_)
    for (void* const block : blocks) std::free(block);
  kept_.clear();
  kept_bytes_ = 0;
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

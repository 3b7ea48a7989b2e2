#include "profiler/cupti/buffer_pool.h"

#include <cstring>
#include <new>

namespace offprof {

BufferPool::BufferPool(std::size_t buffers, std::size_t bytes_each)
    : words_each_(bytes_each / sizeof(std::uint64_t)) {
  free_.reserve(buffers);
  filled_.reserve(buffers);
  for (std::size_t i = 0; i < buffers; ++i) {
    // calloc, since memory that the system has already zeroed need not be written.
    // NOLINTNEXTLINE(cppcoreguidelines-no-malloc)
    buffers_.emplace_back(static_cast<std::uint64_t*>(std::calloc(words_each_, sizeof(std::uint64_t))));
    if (buffers_.back() == nullptr) throw std::bad_alloc();
    free_.push_back(reinterpret_cast<std::uint8_t*>(buffers_.back().get()));
  }
}

std::uint8_t* BufferPool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  std::uint8_t* const buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void BufferPool::fill(Filled buffer) {
  const std::lock_guard lock(mutex_);
  filled_.push_back(buffer);  // there is room for all buffers
}

std::optional<BufferPool::Filled> BufferPool::next_filled() {
  const std::lock_guard lock(mutex_);
  if (filled_.empty()) return std::nullopt;
  const Filled buffer = filled_.front();
  filled_.erase(filled_.begin());
  return buffer;
}

void BufferPool::give_back(Filled buffer) {
  std::memset(buffer.data, 0, buffer.bytes);
  const std::lock_guard lock(mutex_);
  free_.push_back(buffer.data);
}

}  // namespace offprof

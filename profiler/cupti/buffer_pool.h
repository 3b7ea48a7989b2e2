#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace offprof {

/// Buffers for a tracer that must not allocate while it traces. All of them are allocated beforehand, zeroed
/// and aligned to 8 bytes, but take no physical memory before they are used. CUPTI takes them and returns
/// them filled, from any thread. The reader gives them back to the pool.
class BufferPool {
 public:
  struct Filled {
    std::uint8_t* data = nullptr;
    std::size_t bytes = 0;  ///< bytes of records; may be 0
  };

  BufferPool(std::size_t buffers, std::size_t bytes_each);

  std::size_t bytes_each() const { return words_each_ * sizeof(std::uint64_t); }
  /// Returns a free buffer; nullptr: all of them are in use.
  std::uint8_t* take();
  /// Adds a filled buffer. `buffer.data` must come from take.
  void fill(Filled buffer);
  /// Returns the buffer that was filled first; nullopt: there is none.
  std::optional<Filled> next_filled();
  /// Zeroes the buffer and makes it free.
  void give_back(Filled buffer);

 private:
  struct Free {
    void operator()(std::uint64_t* words) const { std::free(words); }  // NOLINT(cppcoreguidelines-no-malloc)
  };

  std::size_t words_each_;
  std::vector<std::unique_ptr<std::uint64_t, Free>> buffers_;
  std::mutex mutex_;
  std::vector<std::uint8_t*> free_;
  std::vector<Filled> filled_;  ///< oldest first
};

}  // namespace offprof

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace offprof {

/// Buffers for a tracer that must not allocate while it traces: all of them are made beforehand, zeroed and
/// aligned to 8 bytes, though no memory is behind them before they are used. CUPTI takes them and hands them
/// back filled, from any thread; the reader gives them back.
class BufferPool {
 public:
  struct Filled {
    std::uint8_t* data = nullptr;
    std::size_t bytes = 0;  ///< of records; may be 0
  };

  BufferPool(std::size_t buffers, std::size_t bytes_each);

  std::size_t bytes_each() const { return words_each_ * sizeof(std::uint64_t); }
  /// nullptr: all of them are in use.
  std::uint8_t* take();
  /// `buffer.data` was taken.
  void fill(Filled buffer);
  /// The one filled first; nullopt: none is.
  std::optional<Filled> next_filled();
  /// It is zeroed, and can be taken again.
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

#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace offprof {

/// Runs `work(i)` for every i below `count` on `threads` threads, including this one (0: one per core). If a
/// call throws, no further ones begin, and the exception is thrown here once all threads are done.
template <typename Work>
void for_each_index(std::size_t count, unsigned threads, Work work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  const std::size_t wanted = threads > 0 ? threads : std::thread::hardware_concurrency();
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < wanted && i < count; ++i) others.emplace_back(take);
    take();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace offprof

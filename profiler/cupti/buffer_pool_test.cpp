#include "profiler/cupti/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace offprof {
namespace {

TEST(BufferPool, HandsEachBufferOutOnce) {
  BufferPool pool(2, 64);
  std::uint8_t* const first = pool.take();
  std::uint8_t* const second = pool.take();
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.take(), nullptr);
  pool.give_back({second, 0});
  EXPECT_EQ(pool.take(), second);
}

TEST(BufferPool, BuffersAreAlignedAndZeroed) {
  BufferPool pool(3, 100);
  EXPECT_EQ(pool.bytes_each(), 96U);
  for (int i = 0; i < 3; ++i) {
    std::uint8_t* const buffer = pool.take();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % 8, 0U);
    EXPECT_TRUE(std::all_of(buffer, buffer + 96, [](std::uint8_t byte) { return byte == 0; }));
  }
}

TEST(BufferPool, ZeroesAReturnedBuffer) {
  BufferPool pool(1, 64);
  std::uint8_t* const buffer = pool.take();
  std::fill_n(buffer, 40, std::uint8_t{1});
  pool.fill({buffer, 40});
  pool.give_back(*pool.next_filled());
  EXPECT_TRUE(std::all_of(buffer, buffer + 64, [](std::uint8_t byte) { return byte == 0; }));
}

TEST(BufferPool, ReturnsFilledBuffersInOrder) {
  BufferPool pool(2, 64);
  std::uint8_t* const first = pool.take();
  std::uint8_t* const second = pool.take();
  EXPECT_FALSE(pool.next_filled());
  pool.fill({second, 8});
  pool.fill({first, 16});
  EXPECT_EQ(pool.next_filled()->data, second);
  EXPECT_EQ(pool.next_filled()->bytes, 16U);
}

TEST(BufferPool, ServesSeveralThreads) {
  BufferPool pool(8, 64);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i)
        if (std::uint8_t* const buffer = pool.take()) pool.fill({buffer, 8});
    });
  std::size_t read = 0;
  for (int i = 0; i < 10000; ++i)
    if (const auto filled = pool.next_filled()) {
      ++read;
      pool.give_back(*filled);
    }
  for (std::thread& thread : threads) thread.join();
  while (const auto filled = pool.next_filled()) pool.give_back(*filled), ++read;
  EXPECT_GE(read, 8U);
  for (int i = 0; i < 8; ++i) EXPECT_NE(pool.take(), nullptr);
}

}  // namespace
}  // namespace offprof

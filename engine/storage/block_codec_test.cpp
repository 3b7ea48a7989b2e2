#include "engine/storage/block_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "traces/base/error.h"

namespace offprof {
namespace {

std::vector<std::byte> encoded(const std::vector<std::byte>& block, int width) {
  std::vector<std::byte> result(block.size() + kMostCodecOverhead);
  result.resize(static_cast<std::size_t>(compress_block(block, width, result)));
  return result;
}

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 random(3);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Returns normally distributed values, like the outputs of a layer.
std::vector<std::byte> normal_floats(std::size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  std::vector<std::byte> bytes(count * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(BlockCodec, RestoresEveryBitForAnyWidthAndLength) {
  for (const std::size_t count : {1, 3, 100, 127, 4096, 100'003}) {
    for (const int width : {1, 2, 4, 8}) {
      const std::vector<std::byte> block = random_bytes(count), compressed = encoded(block, width);
      std::vector<std::byte> back(count);
      decompress_block(compressed, back);
      EXPECT_EQ(back, block) << count << " bytes, width " << width;
    }
  }
}

TEST(BlockCodec, CompressesNormalNumbersALittleAndZerosALot) {
  const std::vector<std::byte> numbers = normal_floats(100'000), zeros(400'000);
  EXPECT_LT(encoded(numbers, 4).size(), numbers.size() * 19 / 20);
  EXPECT_LT(encoded(zeros, 4).size(), zeros.size() / 20);
}

TEST(BlockCodec, RejectsBytesThatAreNotACompressedBlockOfThatSize) {
  const std::vector<std::byte> compressed = encoded(normal_floats(1000), 4);
  std::vector<std::byte> back(4000), too_short(3999);
  EXPECT_THROW(decompress_block(compressed, too_short), Error);
  EXPECT_THROW(decompress_block(std::span(compressed).first(compressed.size() - 1), back), Error);
  EXPECT_THROW(decompress_block(random_bytes(100), back), Error);
}

}  // namespace
}  // namespace offprof

#include "engine/storage/compressed_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "engine/storage/block_codec.h"

namespace offprof {
namespace {

using testing::HasSubstr;

/// Size of more than one piece that is not a whole number of pieces.
constexpr Bytes kLarge = 9 * kMiB + 5;

using Values = std::vector<std::byte>;

Values random_values(Bytes bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  Values values(static_cast<std::size_t>(bytes));
  std::ranges::generate(values, [&] { return static_cast<std::byte>(random() & 3); });
  return values;
}

class CompressedTierTest : public testing::Test {
 protected:
  Extent written(const Values& values, std::int64_t tag = 0) {
    const auto bytes = static_cast<Bytes>(values.size());
    const Extent extent = tier_.reserve(bytes).value();
    tier_.wait(tier_.write(extent, values.data(), bytes, tag));
    return extent;
  }
  Values read(const Extent& extent) {
    Values values(static_cast<std::size_t>(extent.bytes));
    tier_.wait(tier_.read(extent, values.data(), extent.bytes));
    return values;
  }

  CompressedTier tier_;
};

TEST_F(CompressedTierTest, RestoresTensorsOfAnySize) {
  for (const Bytes bytes : {Bytes{1}, Bytes{100}, 64 * kKiB, kLarge}) {
    const Values values = random_values(bytes, 1);
    EXPECT_TRUE(read(written(values)) == values) << bytes;
  }
}

TEST_F(CompressedTierTest, ExtentsAreIndependent) {
  const Values a = random_values(1000, 1), b = random_values(1000, 2);
  const Extent of_a = written(a), of_b = written(b);
  EXPECT_EQ(read(of_a), a);
  EXPECT_EQ(read(of_b), b);
}

TEST_F(CompressedTierTest, KeepsTheLastWrite) {
  const Extent extent = written(random_values(1000, 1));
  const Values second = random_values(1000, 2);
  tier_.wait(tier_.write(extent, second.data(), 1000));
  EXPECT_EQ(read(extent), second);
}

TEST_F(CompressedTierTest, AReadWaitsForAWriteInProgress) {
  const Values values = random_values(kLarge, 1);
  Values back(values.size());
  const Extent extent = tier_.reserve(kLarge).value();
  tier_.write(extent, values.data(), kLarge);
  tier_.wait(tier_.read(extent, back.data(), kLarge));
  EXPECT_TRUE(back == values);
}

TEST_F(CompressedTierTest, ReleaseWaitsForTransfersInProgress) {
  const Values values = random_values(kLarge, 1);
  const Extent extent = tier_.reserve(kLarge).value();
  const auto ticket = tier_.write(extent, values.data(), kLarge);
  tier_.release(extent);
  EXPECT_TRUE(tier_.is_done(ticket));
}

TEST_F(CompressedTierTest, CountsStoredBytesAndTheirPeak) {
  tier_.release(written(random_values(kMiB, 1)));
  tier_.release(written(random_values(kMiB, 2)));
  const StoredBytes stored = tier_.take_stored();
  EXPECT_EQ(stored.given, 2 * kMiB);
  EXPECT_GT(stored.stored, 2 * stored.given / 8 - 1);  // two bits of each byte are random
  EXPECT_LT(stored.stored, stored.given / 2);
  EXPECT_LT(stored.peak, stored.stored);
  EXPECT_EQ(tier_.take_stored().given, 0);
}

TEST_F(CompressedTierTest, ReleasedExtentsAreNotCounted) {
  const Extent kept = written(random_values(kMiB, 1));
  tier_.take_stored();
  const Bytes live = tier_.take_stored().peak;
  EXPECT_GT(live, 0);
  tier_.release(kept);
  tier_.take_stored();
  EXPECT_EQ(tier_.take_stored().peak, 0);
}

TEST_F(CompressedTierTest, RecordsContainDirectionBytesAndTag) {
  const Extent extent = written(random_values(1000, 1), 7);
  read(extent);
  const std::vector<DiskRecord> records = tier_.take_records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].direction, DiskDirection::kWrite);
  EXPECT_EQ(records[0].tag, 7);
  EXPECT_EQ(records[1].direction, DiskDirection::kRead);
  EXPECT_EQ(records[1].bytes, 1000);
  EXPECT_TRUE(tier_.take_records().empty());
}

TEST_F(CompressedTierTest, NamesTheCodecAndWarnsThatItIsMemory) {
  EXPECT_EQ(describe(tier_.facts()), "host memory, compressed by " + block_codec());
  EXPECT_THAT(tier_.facts().warning, HasSubstr("not part of host_peak_bytes"));
}

/// Compares many tensors at once, in a random order, with copies in memory.
TEST_F(CompressedTierTest, KeepsManyTensorsInAnyOrder) {
  std::mt19937 random(11);
  std::vector<std::pair<Extent, Values>> live;
  for (std::uint32_t i = 0; i < 400; ++i) {
    if (live.size() < 3 || (live.size() < 20 && random() % 2 == 0)) {
      const Values values = random_values(1 + static_cast<Bytes>(random() % 50'000), i);
      live.emplace_back(written(values), values);
      continue;
    }
    const auto taken = live.begin() + static_cast<std::ptrdiff_t>(random() % live.size());
    ASSERT_EQ(read(taken->first), taken->second) << "step " << i;
    tier_.release(taken->first);
    live.erase(taken);
  }
}

}  // namespace
}  // namespace offprof

#include "simulator/advisor/largest_size.h"

#include <gtest/gtest.h>

#include <set>

namespace offprof {
namespace {

TEST(LargestSize, IsTheLastThatFits) {
  for (std::int64_t largest = 0; largest <= 300; ++largest)
    for (const std::int64_t guess : {1, 4, 1000}) {
      std::set<std::int64_t> tried;
      const auto taken = [&](std::int64_t size) {
        EXPECT_TRUE(tried.insert(size).second) << size << " twice, " << largest << " from " << guess;
        return std::optional<Bytes>(1000 + 10 * size);
      };
      EXPECT_EQ(largest_size(guess, 1009 + 10 * largest, taken), largest);
      EXPECT_LE(tried.size(), 8U) << largest << " from " << guess;
    }
}

TEST(LargestSize, FollowsMemoryThatDoesNotGrowEvenly) {
  const auto taken = [](std::int64_t size) { return std::optional<Bytes>(1000 + size * size); };
  for (std::int64_t largest = 1; largest <= 100; ++largest)
    EXPECT_EQ(largest_size(4, 1000 + largest * largest, taken), largest);
}

TEST(LargestSize, EndsWhereStepsCannotBeRecorded) {
  const auto taken = [](std::int64_t size) {
    return size <= 37 ? std::optional<Bytes>(10 * size) : std::nullopt;
  };
  EXPECT_EQ(largest_size(4, 1'000'000, taken), 37);
  EXPECT_EQ(largest_size(4, 100, taken), 10);
}

TEST(LargestSize, HasALimit) {
  EXPECT_EQ(largest_size(4, 100, [](std::int64_t) { return std::optional<Bytes>(1); }), kMostSize);
}

}  // namespace
}  // namespace offprof

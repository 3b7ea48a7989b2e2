#include "simulator/advisor/largest_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

namespace offprof {
namespace {

/// Searches with `taken`, which is called once for each size, and counts the calls for several sizes.
class Search {
 public:
  explicit Search(std::function<std::optional<Bytes>(std::int64_t)> taken, std::size_t at_once = 1)
      : taken_(std::move(taken)), at_once_(at_once) {}

  std::int64_t largest(std::int64_t guess, Bytes most) {
    return largest_size(guess, most, at_once_, [&](const std::vector<std::int64_t>& sizes) {
      EXPECT_LE(sizes.size(), std::max<std::size_t>(at_once_, 2));
      EXPECT_TRUE(std::ranges::is_sorted(sizes));
      ++rounds_;
      std::vector<std::optional<Bytes>> taken;
      for (const std::int64_t size : sizes) {
        EXPECT_TRUE(tried_.insert(size).second) << size << " twice, for " << most << " from " << guess;
        taken.push_back(taken_(size));
      }
      return taken;
    });
  }

  std::size_t tried() const { return tried_.size(); }
  std::size_t rounds() const { return rounds_; }

 private:
  std::function<std::optional<Bytes>(std::int64_t)> taken_;
  std::size_t at_once_;
  std::set<std::int64_t> tried_;
  std::size_t rounds_ = 0;
};

TEST(LargestSize, IsTheLastThatFits) {
  const auto even = [](std::int64_t size) { return std::optional<Bytes>(1000 + 10 * size); };
  for (std::int64_t largest = 0; largest <= 300; ++largest)
    for (const std::int64_t guess : {1, 4, 1000}) {
      Search one(even);
      EXPECT_EQ(one.largest(guess, 1009 + 10 * largest), largest);
      EXPECT_LE(one.tried(), 8U) << largest << " from " << guess;
      for (const std::size_t at_once : {2, 4}) {
        Search several(even, at_once);
        EXPECT_EQ(several.largest(guess, 1009 + 10 * largest), largest) << at_once;
        EXPECT_LE(several.rounds(), 3U) << largest << " from " << guess;
      }
    }
}

TEST(LargestSize, TakesFewerRoundsOfSeveralSizesWhereMemoryGrowsInSteps) {
  const auto in_steps = [](std::int64_t size) { return std::optional<Bytes>((size * 45'000 >> 21) << 21); };
  std::size_t rounds_of_one = 0, rounds_of_two = 0;
  for (Bytes most = 100 * kMiB; most < 200 * kMiB; most += 2 * kMiB) {
    Search one(in_steps), two(in_steps, 2);
    EXPECT_EQ(one.largest(1024, most), two.largest(1024, most));
    rounds_of_one += one.rounds();
    rounds_of_two += two.rounds();
  }
  EXPECT_LT(static_cast<double>(rounds_of_two), 0.8 * static_cast<double>(rounds_of_one));
}

TEST(LargestSize, FollowsMemoryThatDoesNotGrowEvenly) {
  for (const std::size_t at_once : {1, 2, 4})
    for (std::int64_t largest = 1; largest <= 100; ++largest) {
      Search search([](std::int64_t size) { return std::optional<Bytes>(1000 + size * size); }, at_once);
      EXPECT_EQ(search.largest(4, 1000 + largest * largest), largest);
    }
}

TEST(LargestSize, EndsWhereStepsCannotBeRecorded) {
  const auto taken = [](std::int64_t size) {
    return size <= 37 ? std::optional<Bytes>(10 * size) : std::nullopt;
  };
  for (const std::size_t at_once : {1, 2, 4}) {
    EXPECT_EQ(Search(taken, at_once).largest(4, 1'000'000), 37);
    EXPECT_EQ(Search(taken, at_once).largest(4, 100), 10);
  }
}

TEST(LargestSize, HasALimit) {
  for (const std::size_t at_once : {1, 2})
    EXPECT_EQ(Search([](std::int64_t) { return std::optional<Bytes>(1); }, at_once).largest(4, 100),
              kMostSize);
}

}  // namespace
}  // namespace offprof

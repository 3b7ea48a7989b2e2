#include "engine/storage/free_list.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace offprof {
namespace {

FreeList with(std::initializer_list<std::pair<Bytes, Bytes>> stretches) {
  FreeList list;
  for (const auto& [offset, bytes] : stretches) list.give(offset, bytes);
  return list;
}

TEST(FreeList, TakesTheLowestPlaceThatFits) {
  FreeList list = with({{100, 5}, {20, 10}, {50, 30}});
  EXPECT_EQ(list.take(6), 20);
  EXPECT_EQ(list.take(6), 50);
  EXPECT_EQ(list.take(4), 26) << "the rest of the first range";
  EXPECT_EQ(list.take(25), std::nullopt);
}

TEST(FreeList, JoinsNeighbours) {
  FreeList list = with({{0, 10}, {20, 10}});
  EXPECT_EQ(list.take(30), std::nullopt);
  list.give(10, 10);
  EXPECT_EQ(list.largest_bytes(), 30);
  EXPECT_EQ(list.take(30), 0);
  EXPECT_EQ(list.free_bytes(), 0);
}

TEST(FreeList, ReportsTheFreeBytesBeforeAnOffset) {
  const FreeList list = with({{0, 10}, {20, 10}});
  EXPECT_EQ(list.free_before(30), 10);
  EXPECT_EQ(list.free_before(10), 10);
  EXPECT_EQ(list.free_before(20), 0);
  EXPECT_EQ(list.free_before(25), 0);
  EXPECT_EQ(list.free_before(0), 0);
}

TEST(FreeListDeathTest, RejectsBytesThatAreAlreadyFree) {
  FreeList list = with({{10, 10}});
  EXPECT_DEATH(list.give(15, 2), "internal error");
  EXPECT_DEATH(list.give(5, 6), "internal error");
}

/// Compares the list with a map of bytes.
RC_GTEST_PROP(FreeList, MatchesAMapOfBytes, (const std::vector<std::pair<bool, std::uint8_t>>& actions)) {
  constexpr Bytes kEnd = 256;
  FreeList list = with({{0, kEnd}});
  std::vector<bool> is_free(kEnd, true);
  std::vector<std::pair<Bytes, Bytes>> taken;
  for (const auto& [takes, number] : actions) {
    if (takes) {
      const Bytes bytes = 1 + number % 50;
      Bytes first = 0, run = 0;
      for (; first + run < kEnd && run < bytes;) {
        if (is_free[static_cast<std::size_t>(first + run)]) {
          ++run;
        } else {
          first += run + 1;
          run = 0;
        }
      }
      const auto got = list.take(bytes);
      RC_ASSERT(got == (run == bytes ? std::optional(first) : std::nullopt));
      if (!got) continue;
      taken.emplace_back(*got, bytes);
      for (Bytes i = *got; i < *got + bytes; ++i) is_free[static_cast<std::size_t>(i)] = false;
    } else if (!taken.empty()) {
      const auto it = taken.begin() + static_cast<std::ptrdiff_t>(number % taken.size());
      list.give(it->first, it->second);
      for (Bytes i = it->first; i < it->first + it->second; ++i) is_free[static_cast<std::size_t>(i)] = true;
      taken.erase(it);
    }
    RC_ASSERT(list.free_bytes() == std::count(is_free.begin(), is_free.end(), true));
  }
}

}  // namespace
}  // namespace offprof

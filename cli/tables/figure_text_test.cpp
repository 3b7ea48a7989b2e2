#include "cli/tables/figure_text.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(DurationText, ShowsAllSignificantDigits) {
  EXPECT_EQ(duration_text(12'345'678, 0), "12.3 ms");
  EXPECT_EQ(duration_text(12'345'678, 9), "12.3 ms");
  EXPECT_EQ(duration_text(12'345'678, 99'999), "12.3 ms");
}

TEST(DurationText, OmitsUncertainDigits) {
  EXPECT_EQ(duration_text(12'345'678, 100'000), "~12.3 ms");
  EXPECT_EQ(duration_text(12'345'678, 3'000'000), "~12 ms");
  EXPECT_EQ(duration_text(12'345'678, 30'000'000), "~10 ms");
  EXPECT_EQ(duration_text(3'456'789, 300'000), "~3.5 ms");
  EXPECT_EQ(duration_text(1'234'567'890, 30'000'000), "~1.23 s");
}

TEST(DurationText, RoundsSmallDurationsToZero) {
  EXPECT_EQ(duration_text(3'456, 3'000'000), "~0 ms");
  EXPECT_EQ(duration_text(3'456, 50'000), "~0 us");
  EXPECT_EQ(duration_text(0, 50'000), "0 ns");
  EXPECT_EQ(duration_text(999'600, 10'000), "~1.00 ms");
}

}  // namespace
}  // namespace offprof

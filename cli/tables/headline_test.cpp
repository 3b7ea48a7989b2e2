#include "cli/tables/headline.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

constexpr double kGiB = 1 << 30;

TEST(Headline, NamesAUnitOfBothFiguresOnce) {
  EXPECT_EQ(headline(HeadlineFigures{122 * kGiB, 1.25e9}, {55.8 * kGiB, 1.64e9}),
            "peak 122 to 55.8 GiB (-54.3%), step 1.25 to 1.64 s (+31.2%)");
}

TEST(Headline, NamesBothUnitsIfTheyDiffer) {
  EXPECT_EQ(headline(HeadlineFigures{2 * kGiB, 2e9}, {kGiB / 2, 5e8}),
            "peak 2.00 GiB to 512 MiB (-75.0%), step 2.00 s to 500 ms (-75.0%)");
}

TEST(Headline, AFigureThatIsEqualStandsAlone) {
  EXPECT_EQ(headline(HeadlineFigures{kGiB, 2e9}, {kGiB, 3e9}), "peak 1.00 GiB, step 2.00 to 3.00 s (+50.0%)");
}

TEST(Headline, WithoutABaseOnlyTheFiguresOfTheStepAreNamed) {
  EXPECT_EQ(headline({}, {kGiB, 2e9}), "peak 1.00 GiB, step 2.00 s");
}

TEST(Headline, TheRangeOfATimeIsBesideIt) {
  const TimeRange range{1'352'000'000, 1'620'000'000};
  EXPECT_EQ(headline({}, {kGiB, 1.48e9}, 0, range), "peak 1.00 GiB, step 1.48 s (1.35 to 1.62)");
  EXPECT_EQ(headline(HeadlineFigures{kGiB, 1.25e9}, {kGiB, 1.48e9}, 0, range),
            "peak 1.00 GiB, step 1.25 to 1.48 s (1.35 to 1.62; +18.4%)");
}

TEST(Headline, ARangeNamesItsUnitsIfOneIsNotThatOfTheTime) {
  EXPECT_EQ(range_beside(1'100'000'000, {950'000'000, 1'620'000'000}), "950 ms to 1.62 s");
  EXPECT_EQ(range_beside(900'000'000, {850'000'000, 1'620'000'000}), "850 ms to 1.62 s");
}

TEST(Headline, AMissingFigureIsLeftOut) {
  EXPECT_EQ(headline({}, {kGiB, {}}), "peak 1.00 GiB");
  EXPECT_EQ(headline({}, {{}, 2e9}), "step 2.00 s");
}

}  // namespace
}  // namespace offprof

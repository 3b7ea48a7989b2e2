#include "traces/base/whole_number.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(ToWhole, RoundsToTheNearest) {
  EXPECT_EQ(to_whole(2.5), 3);
  EXPECT_EQ(to_whole(-2.4), -2);
  EXPECT_EQ(to_whole(9007199254740993.0), 9007199254740992);
}

TEST(ToWhole, LimitsToTheRangeOf64Bits) {
  EXPECT_EQ(to_whole(9223372036854775807.0), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(to_whole(-1e300), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(to_whole(std::numeric_limits<double>::infinity()), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(to_whole(std::numeric_limits<double>::quiet_NaN()), 0);
}

}  // namespace
}  // namespace offprof

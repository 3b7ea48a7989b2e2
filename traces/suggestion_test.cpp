#include "traces/suggestion.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(Suggestion, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("veiw", "view"), 1U);
  EXPECT_EQ(edit_distance("same", "same"), 0U);
}

TEST(Suggestion, FindsTheNearestName) {
  const std::vector<std::string> names = {"run", "tune", "view"};
  EXPECT_EQ(nearest("rum", names), "run");
  EXPECT_EQ(nearest("veiw", names), "view");
  EXPECT_EQ(nearest("tuen", names), "tune");
}

TEST(Suggestion, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest("transmogrify", {"run", "tune"}), std::nullopt);
  EXPECT_EQ(did_you_mean("transmogrify", {"run"}), "");
}

TEST(Suggestion, IsAQuestion) {
  EXPECT_EQ(did_you_mean("rum", {"run"}), "Did you mean `run`?");
}

}  // namespace
}  // namespace offprof

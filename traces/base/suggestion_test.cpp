#include "traces/base/suggestion.h"

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

TEST(Suggestion, PrefersTheNameThatBeginsWithTheWord) {
  const std::vector<std::string> names = {"run", "tune", "simulate", "validate", "view"};
  EXPECT_EQ(nearest("tun", names), "tune") << "as near as run";
  EXPECT_EQ(nearest("sim", names), "simulate") << "too far by letters alone";
  EXPECT_EQ(nearest("v", names), std::nullopt) << "validate or view";
  EXPECT_EQ(nearest("ab", {"xb", "abc", "abcd"}), "abc") << "as near as xb, where several begin so";
}

TEST(Suggestion, ReturnsNothingIfNoNameIsNear) {
  EXPECT_EQ(nearest("transmogrify", {"run", "tune"}), std::nullopt);
  EXPECT_EQ(did_you_mean("transmogrify", {"run"}), "");
}

TEST(Suggestion, FormatsAQuestion) {
  EXPECT_EQ(did_you_mean("rum", {"run"}), "Did you mean `run`?");
}

}  // namespace
}  // namespace offprof

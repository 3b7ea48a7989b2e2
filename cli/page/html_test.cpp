#include "cli/page/html.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(Html, EscapesWhatHasAMeaning) {
  EXPECT_EQ(escape_html("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
}

TEST(Html, FillsPlaceholdersAndKeepsOtherBraces) {
  EXPECT_EQ(fill_template("{a}-{ b }-{c", {{"a", "1"}, {"c", "2"}}), "1-{ b }-{c");
}

TEST(Html, DoesNotFillPlaceholdersInParts) {
  EXPECT_EQ(fill_template("{a}{b}", {{"a", "{b}"}, {"b", "2"}}), "{b}2");
}

}  // namespace
}  // namespace offprof

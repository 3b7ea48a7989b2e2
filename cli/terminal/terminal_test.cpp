#include "cli/terminal/terminal.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(Terminal, WrapsAtBlanksAndIndents) {
  EXPECT_EQ(wrap("one two three four", 9, 0), "one two\nthree\nfour");
  EXPECT_EQ(wrap("one two three", 12, 4), "one two\n    three");
}

TEST(Terminal, WrapKeepsLineBreaks) {
  EXPECT_EQ(wrap("one\ntwo", 80, 2), "one\n  two");
}

TEST(Terminal, WrapDoesNotBreakALongWord) {
  EXPECT_EQ(wrap("a incomprehensible b", 6, 0), "a\nincomprehensible\nb");
}

TEST(Terminal, CutsWithAnEllipsis) {
  EXPECT_EQ(cut_to_width("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to_width("abcdef", 4), "abc…");
  EXPECT_EQ(cut_to_width("µµµµ", 3), "µµ…");
}

TEST(Terminal, CountsCodePoints) {
  EXPECT_EQ(display_width("µs → …"), 6U);
}

TEST(Terminal, ColoursOnlyATerminalByDefault) {
  EXPECT_TRUE(wants_color(ColorWhen::kAuto, true, {}));
  EXPECT_FALSE(wants_color(ColorWhen::kAuto, false, {}));
}

TEST(Terminal, ObeysNoColorUnlessColourIsRequested) {
  const Terminal terminal{.out_is_terminal = true, .err_is_terminal = true, .color_refused = true};
  EXPECT_FALSE(wants_color(ColorWhen::kAuto, true, terminal));
  EXPECT_TRUE(wants_color(ColorWhen::kAlways, true, terminal));
  EXPECT_FALSE(wants_color(ColorWhen::kNever, true, {}));
}

TEST(Page, PaintsOnlyWithColour) {
  EXPECT_EQ(Page{}.paint(Tone::kBad, "x"), "x");
  EXPECT_EQ((Page{.width = 80, .color = true}.paint(Tone::kGood, "x")), "\033[32mx\033[0m");
}

TEST(ForTerminal, KeepsColoursAndLineBreaks) {
  const Page page{.color = true};
  for (const Tone tone : {Tone::kStrong, Tone::kFaint, Tone::kGood, Tone::kWarning, Tone::kBad}) {
    const std::string text = "a " + page.paint(tone, "b\nc") + " d\n";
    EXPECT_EQ(for_terminal(text), text);
  }
  EXPECT_EQ(for_terminal(std::string(kWipeLine) + "x"), std::string(kWipeLine) + "x");
}

TEST(ForTerminal, ShowsEveryOtherEscapeSequence) {
  EXPECT_EQ(for_terminal("\033[8mhidden\033[2J\033"), R"(\u001b[8mhidden\u001b[2J\u001b)");
  EXPECT_EQ(for_terminal("\033\033[1mx\r"), "\\u001b\033[1mx\\u000d");
}

}  // namespace
}  // namespace offprof

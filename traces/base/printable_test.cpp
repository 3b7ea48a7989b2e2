#include "traces/base/printable.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace offprof {
namespace {

TEST(Printable, KeepsTextsOfAllLanguages) {
  for (const char* text :
       {"", "aten::relu", "µs → 3 ×", "日本語", "عربي", "e\u0301", "😀", "\ufffd", "\U0010fffd"}) {
    EXPECT_TRUE(is_printable(text)) << text;
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\x07"), R"(\u001b[2J\u001b]0;title\u0007)");
  EXPECT_EQ(printable("a\nb\tc\rd\x7f"), R"(a\u000ab\u0009c\u000dd\u007f)");
  EXPECT_EQ(printable(std::string("a\0b", 3)), R"(a\u0000b)");
  EXPECT_EQ(printable("\u009b31m"), R"(\u009b31m)");  // a terminal may interpret it as an escape sequence
}

TEST(Printable, EscapesMarksThatChangeTheDirectionOfWriting) {
  EXPECT_EQ(printable("a\u202eb\u2066c\u061cd"), R"(a\u202eb\u2066c\u061cd)");
}

TEST(Printable, EscapesInvisibleCharactersAndLineSeparators) {
  EXPECT_EQ(printable("a\u200bb\u00adc\ufeff\u2028\u2029"), R"(a\u200bb\u00adc\ufeff\u2028\u2029)");
}

TEST(Printable, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("a\xff\xc3"), "a\ufffd\ufffd");
  EXPECT_EQ(printable("\xc0\x80"), "\ufffd\ufffd");                      // overlong form of U+0000
  EXPECT_EQ(printable("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");            // half of a UTF-16 surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");  // beyond Unicode
  EXPECT_FALSE(is_printable("\x80"));
}

TEST(Printable, KeepsLineBreaksOnRequest) {
  EXPECT_EQ(printable("a\nb\r\n", true), "a\nb\\u000d\n");
}

TEST(Printable, KeepsTheMeaningOfAJsonText) {
  const nlohmann::json json = {{"a\u202e", "b\u009b\x1b\u2028"}};
  EXPECT_TRUE(is_printable(printable(json.dump())));
  EXPECT_EQ(nlohmann::json::parse(printable(json.dump())), json);
}

}  // namespace
}  // namespace offprof

#include "traces/io/json_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traces/base/error.h"
#include "traces/io/json_document.h"

namespace offprof {
namespace {

using testing::HasSubstr;

template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

std::string error_of(const std::string& text) {
  return message_of([&] { parse_document(text, "t.json"); });
}

TEST(ParseJson, AgreesWithAnotherParser) {
  for (const char* text : {"null",
                           " [ ] ",
                           "{}",
                           R"({"a": {"b": [1, -2, 0.1, 1e-7, true, false, null, "x"]}, "c": []})",
                           "-0",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "0e308",
                           "-0e-308",
                           "0.000e300",
                           "5e-324",
                           "12345678901234567890e-300",
                           "0.3333333333333333",
                           "2.2250738585072014e-308",
                           "1.7976931348623157e308",
                           "123456789012345678.5",
                           R"("\u00e4\ud83d\ude00\"\\\/")",
                           "\"\xc3\xa4\xf0\x9f\x98\x80\""}) {
    EXPECT_EQ(parse_document(text, "t.json"), nlohmann::json::parse(text)) << text;
  }
}

TEST(ParseJson, AcceptsTwoHundredLevelsAndNoMore) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(error_of(nested(200)), "no error");
  EXPECT_THAT(error_of(nested(201)), HasSubstr("nested too deeply"));
}

TEST(ParseJson, AcceptsPiecesThatEndAnywhere) {
  for (std::size_t blanks = (1 << 18) - 60; blanks < (1 << 18) + 2; ++blanks) {
    const std::string text =
        "[" + std::string(blanks, ' ') + R"(12345, "text\u00e4\ud83d\ude00", -1.5e3, true, null])";
    EXPECT_EQ(parse_document(text, "t.json"), nlohmann::json::parse(text)) << blanks;
  }
}

TEST(ParseJson, ReportsLineAndColumnAtAnyEndOfAPiece) {
  std::string text = "[\n";
  for (int i = 0; i < 100'000; ++i) text += "1234567,\n";
  EXPECT_THAT(error_of(text + "  x]"), HasSubstr("line 100002, column 3: "));
  const std::string long_line = "[" + std::string(1 << 19, ' ') + "x]";
  EXPECT_THAT(error_of(long_line), HasSubstr("line 1, column 524290: "));
}

TEST(ParseJson, KeepsTheLastMemberOfAName) {
  EXPECT_EQ(parse_document(R"({"a": {"b": 1}, "a": 2})", "t.json"), nlohmann::json({{"a", 2}}));
}

TEST(ParseJson, RejectsDuplicateMembersInAStrictDocument) {
  const auto parse = [](const std::string& text) {
    TextSource source(text);
    return parse_strict_document(source, "t.json");
  };
  const std::string text = R"({"traceEvents": {"a": [1, -2, 0.5, null, true, "x"]}, "a": {"a": {}}})";
  EXPECT_EQ(parse(text), nlohmann::json::parse(text));
  EXPECT_THAT(message_of([&] { parse(R"({"a": {"b": 1, "c": {"b": 2}, "b": 1}})"); }),
              HasSubstr("'t.json' has 'b' twice in one object"));
}

TEST(ParseJson, SkipsAByteOrderMark) {
  EXPECT_EQ(parse_document("\xef\xbb\xbf[1]", "t.json"), nlohmann::json({1}));
}

TEST(ParseJson, RejectsInvalidUtf8) {
  EXPECT_THAT(error_of("[\"\xff\"]"), HasSubstr("is not JSON: line 1, column"));
  EXPECT_THAT(error_of("[\"\xc0\x80\", 1]"), HasSubstr("is not JSON"));
  EXPECT_THAT(error_of("[\"\xed\xa0\x80\", 1]"), HasSubstr("is not JSON"));
}

TEST(ParseJson, RejectsAZeroByte) {
  EXPECT_THAT(error_of(std::string("[1]\0", 4)), HasSubstr("line 1, column 4"));
  EXPECT_THAT(error_of(std::string("[1,\0 2]", 7)), HasSubstr("line 1, column 4"));
  EXPECT_THAT(error_of(std::string("[\"a\0b\"]", 7)), HasSubstr("is not JSON"));
  EXPECT_THAT(error_of(std::string("\0", 1)), HasSubstr("is not JSON"));
}

TEST(ParseJson, RejectsSyntaxThatJsonLacks) {
  for (const char* text : {"[1,]", "{\"a\" 1}", "[01]", "[+1]", "[.5]", "[1.]x", "[NaN]", "[1] // x", "['a']",
                           "[\"\t\"]", "[\"\\x\"]", "[1e999]", "[1 2]", "[1]]", "tru e", "{a: 1}", "[-]"}) {
    EXPECT_THAT(error_of(text), HasSubstr("'t.json' is not JSON: line 1, column ")) << text;
  }
}

TEST(ParseJson, DistinguishesTruncatedTextFromInvalidText) {
  const std::string text = R"({"a": [1.5e3, true, "x\u00e4\ud83d\ude00"], "b": null})";
  for (std::size_t size = 1; size < text.size(); ++size)
    EXPECT_THAT(error_of(text.substr(0, size)), HasSubstr("is truncated")) << text.substr(0, size);
}

TEST(ParseJson, ReadsNumbersWithAnyNumberOfZeros) {
  const std::string zeros(400, '0');
  const std::vector<std::string> texts = {"0." + zeros,
                                          "0." + zeros + "1",
                                          "0." + zeros + "1e-20",
                                          "0e-400",
                                          "1" + zeros.substr(100) + "e-290",
                                          "0." + zeros.substr(50) + "1e300",
                                          "1e-400"};
  for (const std::string& text : texts)
    EXPECT_EQ(parse_document(text, "t.json").get<double>(), std::strtod(text.c_str(), nullptr)) << text;
}

TEST(ParseJson, RejectsNumbersAboveTheRangeOfDoubles) {
  const std::vector<std::string> texts = {"12345678901234567890e300", "1" + std::string(400, '0'), "1e999"};
  for (const std::string& text : texts)
    EXPECT_THAT(error_of("[" + text + "]"), testing::ContainsRegex("too (big|large)")) << text;
}

TEST(ParseJson, PassesTextsAndNamesInPrintableForm) {
  const nlohmann::json json = parse_document("{\"a\\n\": \"\\u001b[31m\\u0000\xe2\x80\xae\"}", "t.json");
  EXPECT_EQ(json, nlohmann::json({{R"(a\u000a)", R"(\u001b[31m\u0000\u202e)"}}));
}

TEST(ParseJson, RejectsHalfASurrogatePair) {
  for (const char* text : {R"(["\ud800"])", R"(["\ud800x"])", R"(["\udc00\ud800"])"})
    EXPECT_THAT(error_of(text), HasSubstr("surrogate pair")) << text;
  EXPECT_EQ(parse_document(R"(["\udc00"])", "t.json"), nlohmann::json({"\ufffd\ufffd\ufffd"}));
}

TEST(ParseJson, RejectsATreeWithTooManyValues) {
  std::string text = "[0";
  for (int i = 0; i < 10'000'000; ++i) text += ",0";
  EXPECT_THAT(error_of(text + "]"), HasSubstr("'t.json' has more values than"));
}

TEST(ParseJson, ChecksTheSyntaxOfASkippedValue) {
  EXPECT_THAT(error_of(R"({"traceEvents": [{"a": 1,}]})"), HasSubstr("line 1, column 26"));
  EXPECT_THAT(error_of(R"({"traceEvents": )" + std::string(1000, '[')), HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace offprof

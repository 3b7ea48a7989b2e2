#include "traces/base/units.h"

#include <gmock/gmock.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::HasSubstr;

/// Returns the message of the Error that `call` throws.
template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_FALSE(error.hint().empty());
    return error.what();
  }
  return "no error";
}

std::string bytes_error(const char* text) {
  return message_of([&] { parse_bytes(text); });
}

TEST(ParseBytes, ReadsPlainCounts) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("17B"), 17);
  EXPECT_EQ(parse_bytes("9223372036854775807"), 9223372036854775807);
}

TEST(ParseBytes, ReadsPowersOf1024) {
  EXPECT_EQ(parse_bytes("3K"), 3 * kKiB);
  EXPECT_EQ(parse_bytes("3MiB"), 3 * kMiB);
  EXPECT_EQ(parse_bytes("2G"), 2 * kGiB);
  EXPECT_EQ(parse_bytes("1TiB"), 1024 * kGiB);
}

TEST(ParseBytes, ReadsPowersOf1000) {
  EXPECT_EQ(parse_bytes("5kB"), 5'000);
  EXPECT_EQ(parse_bytes("5MB"), 5'000'000);
  EXPECT_EQ(parse_bytes("5GB"), 5'000'000'000);
  EXPECT_EQ(parse_bytes("5TB"), 5'000'000'000'000);
}

TEST(ParseBytes, ReadsFractions) {
  EXPECT_EQ(parse_bytes("1.5GiB"), 3 * kGiB / 2);
  EXPECT_EQ(parse_bytes("0.25K"), 256);
  EXPECT_EQ(parse_bytes("2.5 MB"), 2'500'000);
}

TEST(ParseBytes, KeepsAllDigitsOfLargeCounts) {
  EXPECT_EQ(parse_bytes("9007199254740993"), 9007199254740993);
}

TEST(ParseBytes, RejectsNegativeSizes) {
  EXPECT_THAT(bytes_error("-1K"), HasSubstr("negative"));
}

TEST(ParseBytes, RejectsBits) {
  EXPECT_THAT(bytes_error("12Mb"), HasSubstr("bits"));
}

TEST(ParseBytes, RejectsOverflow) {
  EXPECT_THAT(bytes_error("9223372036854775808"), HasSubstr("too large"));
  EXPECT_THAT(bytes_error("9000000000G"), HasSubstr("too large"));
  EXPECT_THAT(bytes_error("8388607.99999999999999999999TiB"), HasSubstr("too large"));
}

TEST(ParseBytes, RejectsTextThatIsNotASize) {
  EXPECT_THAT(bytes_error(""), HasSubstr("empty"));
  EXPECT_THAT(bytes_error("many"), HasSubstr("does not begin with a number"));
  EXPECT_THAT(bytes_error("nan"), HasSubstr("does not begin with a number"));
  EXPECT_THAT(bytes_error("3X"), HasSubstr("'X' is not a unit"));
  EXPECT_THAT(bytes_error("1e9"), HasSubstr("'e9' is not a unit"));
  EXPECT_THAT(bytes_error("0x10"), HasSubstr("'x10' is not a unit"));
  EXPECT_THAT(bytes_error("1.5"), HasSubstr("fraction"));
}

TEST(ParseRate, ReadsASizePerSecond) {
  EXPECT_DOUBLE_EQ(parse_rate("25GB/s"), 25e9);
  EXPECT_DOUBLE_EQ(parse_rate("1KiB/s"), 1024);
}

TEST(ParseRate, RejectsOtherThanASizePerSecond) {
  EXPECT_THAT(message_of([] { parse_rate("25GB"); }), HasSubstr("/s"));
  EXPECT_THAT(message_of([] { parse_rate("0/s"); }), HasSubstr("is 0"));
  EXPECT_THAT(message_of([] { parse_rate("25Gb/s"); }), HasSubstr("bits"));
}

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("250ns"), 250);
  EXPECT_EQ(parse_duration("10us"), 10'000);
  EXPECT_EQ(parse_duration("1.5ms"), 1'500'000);
  EXPECT_EQ(parse_duration("2s"), 2'000'000'000);
}

TEST(ParseDuration, RequiresAUnit) {
  EXPECT_THAT(message_of([] { parse_duration("5"); }), HasSubstr("no unit"));
  EXPECT_THAT(message_of([] { parse_duration("5min"); }), HasSubstr("'min' is not a unit"));
}

TEST(FormatBytes, PrintsThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(3 * kGiB / 2), "1.50 GiB");
  EXPECT_EQ(format_bytes(12'345 * kKiB), "12.1 MiB");
  EXPECT_EQ(format_bytes(512 * kMiB), "512 MiB");
}

TEST(FormatBytes, RoundsUpIntoTheNextUnit) {
  EXPECT_EQ(format_bytes(kMiB - 1), "1.00 MiB");
}

TEST(FormatBytes, PrintsTheLargestAndTheSmallest) {
  EXPECT_EQ(format_bytes(std::numeric_limits<Bytes>::max()), "8.00 EiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<Bytes>::min()), "-8.00 EiB");
}

TEST(FormatByteDifference, ShowsTheSign) {
  EXPECT_EQ(format_byte_difference(3 * kMiB / 2), "+1.50 MiB");
  EXPECT_EQ(format_byte_difference(-12), "-12 B");
  EXPECT_EQ(format_byte_difference(0), "0 B");
}

TEST(FormatDuration, PrintsThreeDigits) {
  EXPECT_EQ(format_duration(812), "812 ns");
  EXPECT_EQ(format_duration(3'140'000), "3.14 ms");
  EXPECT_EQ(format_duration(1'020'000'000), "1.02 s");
  EXPECT_EQ(format_duration(999'999), "1.00 ms");
  EXPECT_EQ(format_duration(5'000'000'000'000), "5000 s");
}

TEST(FormatRate, UsesPowersOf1000) {
  EXPECT_EQ(format_rate(12.5e9), "12.5 GB/s");
}

}  // namespace
}  // namespace offprof

#include "engine/models/inputs/input_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <ostream>

#include "traces/base/error.h"

namespace offprof {

/// Prints a spec for rapidcheck.
std::ostream& operator<<(std::ostream& out, const InputSpec& spec) {
  return out << to_string(spec);
}

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Returns the error message; fails the test if there is none.
std::string message_of(const std::string& text) {
  try {
    parse_input_spec(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("'" + text + "'"));
    EXPECT_THAT(error.hint(), HasSubstr("float32[8,3,96,96]"));
    return error.what();
  }
  ADD_FAILURE() << text << " is accepted";
  return {};
}

TEST(InputSpec, HasADtypeAndSizes) {
  EXPECT_EQ(parse_input_spec("float32[8,3,96,96]"), (InputSpec{"float32", {8, 3, 96, 96}, {}}));
}

TEST(InputSpec, MayBoundIntegers) {
  EXPECT_EQ(parse_input_spec("int64[4,128]<512"), (InputSpec{"int64", {4, 128}, 512}));
  EXPECT_EQ(parse_input_spec("uint8[2]<3"), (InputSpec{"uint8", {2}, 3}));
}

TEST(InputSpec, IsAScalarWithoutSizes) {
  EXPECT_EQ(parse_input_spec("float32[]"), (InputSpec{"float32", {}, {}}));
}

TEST(InputSpec, MayHaveBlanks) {
  EXPECT_EQ(parse_input_spec("  int64 [ 4 , 128 ] < 512\r"), (InputSpec{"int64", {4, 128}, 512}));
}

TEST(InputSpec, AcceptsEveryDtype) {
  for (const std::string& dtype : input_dtypes()) EXPECT_EQ(parse_input_spec(dtype + "[1]").dtype, dtype);
}

TEST(InputSpec, NamesAnUnknownDtypeAndTheKnownOnes) {
  const std::string message = message_of("float31[8]");
  EXPECT_THAT(message, HasSubstr("unknown dtype 'float31'"));
  EXPECT_THAT(message, HasSubstr("bfloat16"));
}

TEST(InputSpec, RejectsMissingBrackets) {
  for (const char* text : {"float32", "float32[8", "float32 8]", "float32]8[", ""})
    EXPECT_THAT(message_of(text), HasSubstr("brackets are missing")) << text;
}

TEST(InputSpec, RejectsABoundBeyondTheRangeOfTheDtype) {
  EXPECT_THAT(message_of("int8[4]<1000"), HasSubstr("do not fit into int8"));
  EXPECT_EQ(parse_input_spec("int8[4]<128").below, 128);
}

TEST(InputSpec, QuotesBadSizes) {
  EXPECT_THAT(message_of("float32[8,x]"), HasSubstr("'x' is not a valid size"));
  EXPECT_THAT(message_of("float32[0]"), HasSubstr("'0' is not a valid size"));
  EXPECT_THAT(message_of("float32[-1]"), HasSubstr("'-1' is not a valid size"));
  EXPECT_THAT(message_of("float32[1.5]"), HasSubstr("'1.5' is not a valid size"));
  EXPECT_THAT(message_of("float32[8,,3]"), HasSubstr("'' is not a valid size"));
  EXPECT_THAT(message_of("float32[99999999999999999999]"), HasSubstr("is not a valid size"));
}

TEST(InputSpec, RejectsATrailingComma) {
  EXPECT_THAT(message_of("float32[8,]"), HasSubstr("missing after the last comma"));
}

TEST(InputSpec, RejectsMoreElementsThanAnyMachineHolds) {
  EXPECT_THAT(message_of("float32[1099511627776,2]"), HasSubstr("more elements"));
  EXPECT_THAT(message_of("float32[4294967296,4294967296,4294967296]"), HasSubstr("more elements"));
}

TEST(InputSpec, AcceptsABoundForIntegersOnly) {
  EXPECT_THAT(message_of("float32[8]<2"), HasSubstr("for integers"));
  EXPECT_THAT(message_of("bool[8]<2"), HasSubstr("for integers"));
}

TEST(InputSpec, QuotesABadBound) {
  EXPECT_THAT(message_of("int64[8]<0"), HasSubstr("'0' is not a valid bound"));
  EXPECT_THAT(message_of("int64[8]<"), HasSubstr("'' is not a valid bound"));
}

TEST(InputSpec, QuotesTextAfterTheSizes) {
  EXPECT_THAT(message_of("int64[8]x"), HasSubstr("'x' follows the sizes"));
}

RC_GTEST_PROP(InputSpecProperty, ReadsBackWhatItWrites, ()) {
  InputSpec spec;
  spec.dtype = *rc::gen::elementOf(input_dtypes());
  spec.sizes = *rc::gen::resize(
      4, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 1000)));
  const bool may_be_bounded = spec.dtype.find("int") != std::string::npos;
  if (may_be_bounded && *rc::gen::arbitrary<bool>())
    spec.below = *rc::gen::inRange<std::int64_t>(1, 128);  // fits each dtype
  RC_ASSERT(parse_input_spec(to_string(spec)) == spec);
}

TEST(SplitInputSpecs, ReadsOneSpecPerLine) {
  EXPECT_THAT(split_input_specs("float32[8]\nint64[4]<9\n"), ElementsAre("float32[8]", "int64[4]<9"));
}

TEST(SplitInputSpecs, ReadsALastLineWithoutItsEnd) {
  EXPECT_THAT(split_input_specs("float32[8]\nbool[1]"), ElementsAre("float32[8]", "bool[1]"));
}

TEST(SplitInputSpecs, SkipsBlankLinesAndComments) {
  EXPECT_THAT(split_input_specs("# images\n\n  \r\n  float32[8]\r\n#int64[4]\n"), ElementsAre("float32[8]"));
}

TEST(SplitInputSpecs, ReturnsNothingForAnEmptyText) {
  EXPECT_THAT(split_input_specs(""), IsEmpty());
}

}  // namespace
}  // namespace offprof

#include "engine/devices/virtual_gpu/values/small_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace offprof {
namespace {

using testing::IsEmpty;

struct SmallValuesTest : testing::Test {
  void write(Bytes at, const std::string& text) {
    values.write(memory + at, text.data(), static_cast<Bytes>(text.size()));
  }
  std::string read(Bytes at, Bytes bytes) {
    const std::vector<char> contents = values.read(memory + at, bytes);
    return {contents.begin(), contents.end()};
  }

  const char* const memory = reinterpret_cast<const char*>(std::uintptr_t{1} << 40);
  SmallValues values;
};

TEST_F(SmallValuesTest, ReadsWhatWasWritten) {
  write(10, "abcdef");
  EXPECT_EQ(read(10, 6), "abcdef");
  EXPECT_EQ(read(12, 2), "cd");
}

TEST_F(SmallValuesTest, KnowsNothingBeyondIt) {
  write(10, "abc");
  EXPECT_EQ(read(9, 2), "");
  EXPECT_EQ(read(12, 2), "");
  EXPECT_EQ(read(13, 1), "");
  EXPECT_EQ(read(0, 1), "");
}

TEST_F(SmallValuesTest, ReadsAcrossPiecesThatTouch) {
  write(10, "abc");
  write(13, "def");
  EXPECT_EQ(read(11, 4), "bcde");
  write(20, "x");
  EXPECT_EQ(read(10, 11), "");
}

TEST_F(SmallValuesTest, ANewPieceReplacesPartsOfOlderOnes) {
  write(10, "abcdef");
  write(12, "XY");
  EXPECT_EQ(read(10, 6), "abXYef");
  write(8, "....");
  EXPECT_EQ(read(8, 8), "....XYef");
}

TEST_F(SmallValuesTest, CopiesKnownContentsAndForgetsTheTargetOfOthers) {
  write(10, "abc");
  write(50, "xyz");
  values.copy(memory + 30, memory + 10, 3);
  EXPECT_EQ(read(30, 3), "abc");
  values.copy(memory + 50, memory + 100, 2);
  EXPECT_EQ(read(50, 1), "");
  EXPECT_EQ(read(52, 1), "z");
}

TEST_F(SmallValuesTest, KnowsContentsUntilAKernelOrUntilTheyAreWritten) {
  write(0, "xyz");
  values.write(memory + 10, "abcd", 4, SmallValues::Known::kUntilWritten);
  values.forget_at_kernel();
  EXPECT_EQ(read(0, 3), "");
  EXPECT_EQ(read(10, 4), "abcd");
  write(11, "x");
  EXPECT_EQ(read(10, 4), "axcd");
  values.forget_at_kernel();
  EXPECT_EQ(read(10, 1), "a");
  EXPECT_EQ(read(11, 1), "");
  EXPECT_EQ(read(12, 2), "cd");
  values.forget_all();
  EXPECT_EQ(read(12, 2), "");
}

TEST_F(SmallValuesTest, AFailureToReadIsThatOfEveryRead) {
  int calls = 0;
  values.write_later(memory + 10, 4, [&]() -> std::vector<char> {
    ++calls;
    throw std::runtime_error("nobody came");
  });
  for (int i = 0; i < 2; ++i) EXPECT_THROW(read(10, 4), std::runtime_error);
  EXPECT_EQ(calls, 1);
  write(10, "abcd");
  EXPECT_EQ(read(10, 4), "abcd");
}

TEST_F(SmallValuesTest, Fills) {
  values.fill(memory, 'a', 3);
  EXPECT_EQ(read(0, 3), "aaa");
}

TEST_F(SmallValuesTest, ForgetsLargePieces) {
  write(0, "abc");
  values.fill(memory, 'b', SmallValues::kLargest + 1);
  EXPECT_EQ(read(0, 3), "");
  const std::string large(static_cast<std::size_t>(SmallValues::kLargest), 'c');
  write(0, large);
  EXPECT_EQ(read(0, SmallValues::kLargest), large);
}

TEST_F(SmallValuesTest, TheirSumIsLimited) {
  const std::string large(static_cast<std::size_t>(SmallValues::kLargest), 'c');
  for (Bytes at = 0; at <= SmallValues::kLargestSum; at += SmallValues::kLargest) write(at, large);
  EXPECT_THAT(read(0, 1), IsEmpty());
  EXPECT_EQ(read(SmallValues::kLargestSum, 1), "c");
}

}  // namespace
}  // namespace offprof

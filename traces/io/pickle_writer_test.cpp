#include "traces/io/pickle_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace offprof {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

// The expected bytes follow Python's pickletools; `pickle.loads` of each gives the value in the test's name.

TEST(PickleWriter, WritesATextOnce) {
  PickleWriter writer;
  writer.begin_list();
  writer.text("ab");
  writer.text("ab");
  writer.end_list();
  EXPECT_EQ(writer.take(), "\x80\2](X\2\0\0\0abq\0h\0e."s);
}

TEST(PickleWriter, WritesIntegersOfEachSize) {
  PickleWriter writer;
  writer.begin_list();
  for (const std::int64_t value :
       {std::int64_t{255}, std::int64_t{256}, std::int64_t{-1}, std::int64_t{1} << 40})
    writer.integer(value);
  writer.end_list();
  EXPECT_EQ(writer.take(), "\x80\2](K\xffM\0\1J\xff\xff\xff\xff\x8a\x08\0\0\0\0\0\1\0\0e."s);
}

TEST(PickleWriter, WritesADictionaryWithConstantsAndAPair) {
  PickleWriter writer;
  writer.begin_dict();
  writer.text("a");
  writer.boolean(true);
  writer.text("b");
  writer.none();
  writer.text("c");
  writer.pair(0, 1);
  writer.end_dict();
  EXPECT_EQ(writer.take(), "\x80\2}(X\1\0\0\0aq\0\x88X\1\0\0\0bq\1NX\1\0\0\0cq\2K\0K\1\x86u."s);
}

TEST(PickleWriter, RepeatsARememberedList) {
  PickleWriter writer;
  writer.begin_list();
  writer.begin_list();
  writer.end_list();
  const PickleWriter::Memo empty = writer.remember();
  writer.repeat(empty);
  writer.end_list();
  EXPECT_EQ(writer.take(), "\x80\2](](eq\0h\0e."s);
}

TEST(PickleWriter, AppendsAtMostAThousandElementsAtATime) {
  PickleWriter writer;
  writer.begin_list();
  for (int i = 0; i < 1001; ++i) writer.integer(7);
  writer.end_list();
  EXPECT_THAT(writer.take(), HasSubstr("K\7e(K\7e."s));
}

}  // namespace
}  // namespace offprof

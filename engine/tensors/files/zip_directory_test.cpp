#include "engine/tensors/files/zip_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::HasSubstr;

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

struct Entry {
  std::string name, content;
  std::uint16_t method = 0;
};

/// Writes a zip file as APPNOTE.TXT describes it. `wide`: sizes and offsets are 64-bit numbers.
std::string zip(const std::vector<Entry>& entries, bool wide = false, const std::string& comment = {}) {
  std::string file, directory;
  for (const Entry& entry : entries) {
    const std::size_t offset = file.size(), size = entry.content.size();
    file += "PK\x03\x04" + number(20, 2) + number(0, 2) + number(entry.method, 2) + number(0, 8) +
            number(size, 4) + number(size, 4) + number(entry.name.size(), 2) + number(3, 2) + entry.name +
            "pad" + entry.content;
    const std::uint64_t none = 0xffffffff;
    const std::string extra =
        wide ? number(1, 2) + number(24, 2) + number(size, 8) + number(size, 8) + number(offset, 8) : "";
    directory += "PK\x01\x02" + number(45, 2) + number(45, 2) + number(0, 2) + number(entry.method, 2) +
                 number(0, 8) + number(wide ? none : size, 4) + number(wide ? none : size, 4) +
                 number(entry.name.size(), 2) + number(extra.size(), 2) + number(0, 10) +
                 number(wide ? none : offset, 4) + entry.name + extra;
  }
  const std::size_t begin = file.size(), count = entries.size();
  file += directory;
  if (wide) {
    const std::size_t end = file.size();
    file += "PK\x06\x06" + number(44, 8) + number(45, 4) + number(0, 8) + number(count, 8) +
            number(count, 8) + number(directory.size(), 8) + number(begin, 8);
    file += "PK\x06\x07" + number(0, 4) + number(end, 8) + number(1, 4);
  }
  return file + "PK\x05\x06" + number(0, 4) + number(count, 2) + number(count, 2) +
         number(directory.size(), 4) + number(begin, 4) + number(comment.size(), 2) + comment;
}

std::string refusal(const std::string& bytes) {
  const TextFile file(bytes, "m.pt");
  try {
    const ZipDirectory directory(file);
    for (const auto& [name, record] : directory.records()) directory.read(name, record);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(error.hint(), "");
    return error.what();
  }
  return "no error";
}

class Zip : public testing::TestWithParam<bool> {};

TEST_P(Zip, ReadsEachRecord) {
  const TextFile file(zip({{"m/a", "first"}, {"m/b", ""}, {"m/c", "third"}}, GetParam()), "m.pt");
  const ZipDirectory directory(file);
  ASSERT_EQ(directory.records().size(), 3U);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"m/a", "first"}, {"m/b", ""}, {"m/c", "third"}};
  for (const auto& [name, content] : expected)
    EXPECT_EQ(directory.read(name, directory.records().at(name)), content) << name;
}

TEST_P(Zip, FindsTheEndBeforeAComment) {
  const TextFile file(zip({{"m/a", "first"}}, GetParam(), std::string(60'000, 'x')), "m.pt");
  EXPECT_EQ(ZipDirectory(file).records().size(), 1U);
}

TEST_P(Zip, RejectsEveryTruncation) {
  const std::string whole = zip({{"m/a", "first"}, {"m/b", "second"}}, GetParam());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(refusal(whole.substr(0, size)), HasSubstr("damaged or truncated archive")) << size;
}

INSTANTIATE_TEST_SUITE_P(SizesOf, Zip, testing::Bool(), [](const testing::TestParamInfo<bool>& wide) {
  return wide.param ? "64Bits" : "32Bits";
});

TEST(ZipDirectory, RejectsRecordsThatItCannotReadInPlace) {
  EXPECT_THAT(refusal(zip({{"m/a", "first", 8}})), HasSubstr("record 'm/a' is compressed"));
}

TEST(ZipDirectory, RejectsTwoRecordsOfOneName) {
  EXPECT_THAT(refusal(zip({{"m/a", "1"}, {"m/a", "2"}})), HasSubstr("two records are named 'm/a'"));
}

TEST(ZipDirectory, RejectsRecordsBeyondTheEnd) {
  const std::string whole = zip({{"m/a", std::string(300, 'x')}});
  std::string bytes = whole;
  const std::size_t header = bytes.find("PK\x01\x02");
  bytes[header + 42] = '\x7f';  // the offset of the record
  EXPECT_THAT(refusal(bytes), HasSubstr("not where its directory says"));
  bytes = whole;
  bytes[header + 20] = bytes[header + 24] = '\x7c';  // the lower byte of its sizes, 300
  EXPECT_THAT(refusal(bytes), HasSubstr("should have 380 bytes"));
}

}  // namespace
}  // namespace offprof

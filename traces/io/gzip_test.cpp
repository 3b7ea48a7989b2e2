#include "traces/io/gzip.h"

#include <gmock/gmock.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::HasSubstr;

std::string unpacked(std::string_view compact) {
  const auto source = decompress_gzip(std::make_unique<TextSource>(compact), "t.json.gz");
  std::string text, piece(1 << 20, '\0');
  for (std::size_t size = piece.size(); size == piece.size(); text.append(piece, 0, size))
    size = source->read(piece);
  return text;
}

std::string error_of(std::string_view compact) {
  try {
    unpacked(compact);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

TEST(Gzip, ReadsBackWhatItPacked) {
  EXPECT_EQ(unpacked(compress_gzip("")), "");
  EXPECT_EQ(unpacked(compress_gzip("a text")), "a text");
}

TEST(Gzip, IgnoresBytesAfterTheLastMember) {
  EXPECT_EQ(unpacked(compress_gzip("a") + compress_gzip("b") + "rest"), "ab");
}

TEST(Gzip, RejectsDamagedData) {
  std::string compact = compress_gzip("a text");
  compact[compact.size() - 6] ^= 1;  // a byte of the checksum
  EXPECT_THAT(error_of(compact), HasSubstr("cannot decompress 't.json.gz': the gzip data is damaged"));
}

TEST(Gzip, RejectsABombBeforeItIsFullyDecompressed) {
  const std::string bomb = compress_gzip(std::string(std::size_t{70} << 20, ' '));
  EXPECT_LT(bomb.size(), 100'000U);
  EXPECT_THAT(error_of(bomb), HasSubstr("it decompresses to more than 250 times its size"));
  EXPECT_THAT(error_of(bomb + bomb), HasSubstr("it decompresses to more than 250 times its size"));
}

TEST(Gzip, DecompressesSmallFilesOfRepeatedBytes) {
  const std::string alike(std::size_t{8} << 20, '0');
  EXPECT_EQ(unpacked(compress_gzip(alike)), alike);
}

}  // namespace
}  // namespace offprof

#include "engine/tensors/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>

#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kName = "m.safetensors";

std::string length_prefix(std::uint64_t length) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes;
}

std::string file_bytes(const std::string& header, const std::string& data = {}) {
  return length_prefix(header.size()) + header + data;
}

SafetensorsFile open_bytes(const std::string& bytes) {
  return SafetensorsFile(std::make_shared<TextFile>(bytes, kName));
}

/// Returns the reader's error for a file with these bytes.
std::string refusal(const std::string& bytes) {
  try {
    open_bytes(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr(kName));
    return error.what();
  }
  return "no error";
}

/// Returns the error for a file with one tensor `a`.
std::string refusal_of(const std::string& dtype, const std::string& shape, const std::string& offsets,
                       std::size_t data_bytes) {
  return refusal(file_bytes(
      R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
      std::string(data_bytes, 'x')));
}

/// Returns the error for a file with eight bytes of data and two tensors of bytes at these offsets.
std::string refusal_of_two(int begin, int end, int begin_of_other, int end_of_other) {
  nlohmann::json header;
  header["a"] = {{"dtype", "U8"}, {"shape", {end - begin}}, {"data_offsets", {begin, end}}};
  header["b"] = {{"dtype", "U8"},
                 {"shape", {end_of_other - begin_of_other}},
                 {"data_offsets", {begin_of_other, end_of_other}}};
  return refusal(file_bytes(header.dump(), "01234567"));
}

TEST(Safetensors, ReadsTheHeaderAndTheTensorsBytes) {
  const SafetensorsFile file = open_bytes(file_bytes(
      R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},)"
      R"("a":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]},"__metadata__":{"format":"pt"}}   )",
      "aAbBcde"));
  EXPECT_THAT(file.metadata(), ElementsAre(Pair("format", "pt")));
  ASSERT_EQ(file.tensors().size(), 2U);
  const StoredTensor& a = file.tensors().at("a");
  EXPECT_EQ(a.dtype, TensorDtype::kBF16);
  EXPECT_THAT(a.sizes, ElementsAre(2, 1));
  EXPECT_EQ(a.bytes, 4);
  std::string bytes(4, '\0');
  file.read(a, bytes);
  EXPECT_EQ(bytes, "aAbB");
  bytes.resize(2);
  file.read(file.tensors().at("b"), bytes, 1);
  EXPECT_EQ(bytes, "de");
}

TEST(Safetensors, AcceptsEmptyTensorsScalarsAndFilesWithoutTensors) {
  EXPECT_TRUE(open_bytes(file_bytes("{}")).tensors().empty());
  const SafetensorsFile file =
      open_bytes(file_bytes(R"({"none":{"dtype":"F64","shape":[0,7],"data_offsets":[2,2]},)"
                            R"("scalar":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})",
                            "xy"));
  EXPECT_EQ(file.tensors().at("none").bytes, 0);
  EXPECT_EQ(file.tensors().at("scalar").bytes, 2);
}

TEST(Safetensors, ATensorMayHaveAnyName) {
  const SafetensorsFile file =
      open_bytes(file_bytes(R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("traceEvents":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                            R"("../a\u001b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                            "abc"));
  EXPECT_EQ(file.tensors().count(""), 1U);
  EXPECT_EQ(file.tensors().count("traceEvents"), 1U);
  EXPECT_EQ(file.tensors().count(R"(../a\u001b)"), 1U);
}

TEST(Safetensors, SupportsDtypesOfHalfBytes) {
  const SafetensorsFile file =
      open_bytes(file_bytes(R"({"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}})", "abc"));
  EXPECT_EQ(file.tensors().at("a").bytes, 3);
  EXPECT_THAT(refusal_of("F4", "[3]", "[0,1]", 1), HasSubstr("has more bytes than a file can have"));
}

TEST(Safetensors, RejectsAFileTooShortForAHeader) {
  EXPECT_THAT(refusal(""), HasSubstr("has 0 bytes"));
  EXPECT_THAT(refusal("1234567"), HasSubstr("has 7 bytes"));
}

TEST(Safetensors, RejectsAHeaderBeyondTheLimit) {
  EXPECT_THAT(refusal(length_prefix(100'000'001) + "{}"), AllOf(HasSubstr("100000001"), HasSubstr("limit")));
  EXPECT_THAT(refusal(length_prefix(~std::uint64_t{0}) + "{}"), HasSubstr("limit"));
}

TEST(Safetensors, RejectsAHeaderBeyondTheFile) {
  EXPECT_THAT(refusal(length_prefix(3) + "{}"), AllOf(HasSubstr("truncated"), HasSubstr("3 bytes")));
}

TEST(Safetensors, RejectsAHeaderThatIsNotAJsonObject) {
  for (const char* header : {"", " {}", "[]", "1", "\xef\xbb\xbf{}"})
    EXPECT_THAT(refusal(file_bytes(header)), HasSubstr("does not begin with '{'")) << header;
  EXPECT_THAT(refusal(file_bytes("{,}")), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal(file_bytes("{} x")), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal(file_bytes("{\"a\xff\":1}")), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal(file_bytes(std::string("{}\0", 3))), HasSubstr("zero byte"));
  EXPECT_THAT(refusal(file_bytes(R"({"a":)" + std::string(500, '['))), HasSubstr("nested too deeply"));
}

TEST(Safetensors, RejectsDuplicateNames) {
  const std::string a = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_THAT(refusal(file_bytes("{" + a + "," + a + "}", "x")), HasSubstr("has 'a' twice"));
  EXPECT_THAT(refusal(file_bytes(R"({"__metadata__":{"a":"1","a":"2"}})")), HasSubstr("has 'a' twice"));
  EXPECT_THAT(
      refusal(file_bytes(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x")),
      HasSubstr("has 'dtype' twice"));
}

TEST(Safetensors, RejectsMetadataThatIsNotText) {
  EXPECT_THAT(refusal(file_bytes(R"({"__metadata__":{"a":1}})")),
              HasSubstr("__metadata__.a: expected a string, found a number"));
  EXPECT_THAT(refusal(file_bytes(R"({"__metadata__":[]})")), HasSubstr("__metadata__: is not an object"));
}

TEST(Safetensors, RejectsEntriesWithMissingOrExtraMembers) {
  EXPECT_THAT(refusal(file_bytes(R"({"a":{"dtype":"U8","shape":[0]}})")),
              HasSubstr("a: 'data_offsets' is missing"));
  EXPECT_THAT(refusal(file_bytes(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})")),
              HasSubstr("x"));
  EXPECT_THAT(refusal(file_bytes(R"({"a":7})")), HasSubstr("a: expected an object, found a number"));
  EXPECT_THAT(refusal_of("U8", "[0]", "[0]", 0), HasSubstr("has 1 data_offsets instead of two"));
}

TEST(Safetensors, RejectsUnknownDtypes) {
  EXPECT_THAT(refusal_of("F128", "[1]", "[0,16]", 16), HasSubstr("a.dtype: 'F128' is not a dtype"));
}

TEST(Safetensors, RejectsHostileShapes) {
  EXPECT_THAT(refusal_of("U8", "[-1]", "[0,1]", 1), HasSubstr("a.shape[0]: -1 is negative"));
  EXPECT_THAT(refusal_of("U8", "[1.0]", "[0,1]", 1), HasSubstr("1.0 is not a whole number"));
  EXPECT_THAT(refusal_of("U8", "[1e0]", "[0,1]", 1), HasSubstr("is not a whole number"));
  EXPECT_THAT(refusal_of("U8", "[18446744073709551615]", "[0,1]", 1), HasSubstr("is not between"));
  EXPECT_THAT(refusal_of("U8", "[4294967296,4294967296]", "[0,0]", 0),
              HasSubstr("has more bytes than a file can have"));
  EXPECT_THAT(refusal_of("F64", "[4611686018427387904]", "[0,0]", 0),
              HasSubstr("has more bytes than a file can have"));
  EXPECT_THAT(refusal_of("U8", "[0,4611686018427387904,4]", "[0,0]", 0),
              HasSubstr("has more bytes than a file can have"));
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_THAT(refusal_of("U8", ones + "]", "[0,1]", 1), HasSubstr("has 65 dimensions"));
}

TEST(Safetensors, RejectsASizeThatDiffersFromTheBytes) {
  EXPECT_THAT(
      refusal_of("F32", "[2,3]", "[0,20]", 20),
      HasSubstr("tensor 'a': F32 of shape [2, 3] takes 24 bytes, but its data_offsets [0, 20] span 20"));
}

TEST(Safetensors, RejectsReversedOffsets) {
  EXPECT_THAT(refusal_of("U8", "[0]", "[1,0]", 1), HasSubstr("ends at 0, before its begin at 1"));
}

TEST(Safetensors, RejectsOffsetsBeyondTheFile) {
  EXPECT_THAT(refusal_of("U8", "[9]", "[0,9]", 8),
              HasSubstr("tensor 'a': ends at 9, but the file has only 8 bytes of tensors: it is truncated"));
  EXPECT_THAT(refusal_of("U8", "[1]", "[9223372036854775806,9223372036854775807]", 8),
              HasSubstr("there is a gap"));
  EXPECT_THAT(refusal_of("U8", "[1]", "[9223372036854775807,9223372036854775808]", 8),
              HasSubstr("is not between"));
}

TEST(Safetensors, RejectsOverlappingTensors) {
  EXPECT_THAT(refusal_of_two(0, 5, 4, 8),
              HasSubstr("tensor 'b': begins at 4, but tensor 'a' ends at 5: they overlap"));
  EXPECT_THAT(refusal_of_two(0, 8, 4, 4), HasSubstr("tensor 'b': begins at 4"));
  EXPECT_THAT(refusal_of_two(0, 8, 0, 8), HasSubstr("they overlap"));
}

TEST(Safetensors, RejectsHoles) {
  EXPECT_THAT(refusal_of_two(0, 3, 4, 8),
              HasSubstr("tensor 'b': begins at 4, but tensor 'a' ends at 3: there is a gap"));
  EXPECT_THAT(refusal_of_two(1, 3, 3, 8), HasSubstr("begins at 1, but the header ends at 0"));
}

TEST(Safetensors, RejectsBytesThatBelongToNoTensor) {
  EXPECT_THAT(refusal_of_two(0, 3, 3, 7),
              HasSubstr("have 7 bytes, but 8 follow the header: 1 belong to no tensor"));
  EXPECT_THAT(refusal(file_bytes("{}", "x")), HasSubstr("1 belong to no tensor"));
}

TEST(Safetensors, RejectsEveryTruncation) {
  const std::string whole =
      file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", std::string(8, 'x'));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(whole.substr(0, size)), "no error") << size;
}

/// A file with the given header and size, otherwise zeros. It counts the bytes that are read.
class SparseFile final : public ReadableFile {
 public:
  SparseFile(std::string head, Bytes size) : head_(std::move(head), kName), size_(size) {}
  const std::string& name() const override { return head_.name(); }
  Bytes size() const override { return size_; }
  std::size_t read(Bytes offset, std::span<char> room) const override {
    read_ += static_cast<Bytes>(room.size());
    std::fill(room.begin(), room.end(), '\0');
    head_.read(offset, room);
    return room.size();
  }
  Bytes bytes_read() const { return read_; }

 private:
  TextFile head_;
  Bytes size_;
  mutable std::atomic<Bytes> read_ = 0;
};

TEST(Safetensors, ReadsOnlyTheHeaderAndTheRequestedTensorOfAHugeFile) {
  const std::string head =
      file_bytes(R"({"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]},)"
                 R"("b":{"dtype":"U8","shape":[5],"data_offsets":[4398046511104,4398046511109]}})");
  const auto sparse = std::make_shared<SparseFile>(head, static_cast<Bytes>(head.size()) + 4398046511109);
  const SafetensorsFile file(sparse);
  EXPECT_EQ(sparse->bytes_read(), static_cast<Bytes>(head.size()));
  std::string bytes(5, 'x');
  file.read(file.tensors().at("b"), bytes);
  EXPECT_EQ(sparse->bytes_read(), static_cast<Bytes>(head.size()) + 5);
}

}  // namespace
}  // namespace offprof

#include "engine/tensors/files/safetensors_writer.h"

#include <gmock/gmock.h>

#include <unistd.h>
#include <iterator>

#include <filesystem>

#include "engine/tensors/files/safetensors.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SafetensorsWriterTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "m.safetensors"; }
  std::string refusal(std::vector<NewTensor> tensors) const {
    try {
      SafetensorsWriter(path(), std::move(tensors));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::ptrdiff_t count_files() const { return std::ssize(folder_.files()); }

  const TestFolder folder_;
};

TEST_F(SafetensorsWriterTest, WritesFilesThatTheReaderReads) {
  SafetensorsWriter writer(path(),
                           {{"bytes", TensorDtype::kU8, {3}},
                            {"wide", TensorDtype::kI64, {}},
                            {"none", TensorDtype::kF32, {0, 2}}},
                           {{"format", "pt"}, {"said", "\"so\""}});
  for (const NewTensor& tensor : writer.tensors())
    writer.write(tensor.name == "wide" ? "12345678" : tensor.name == "bytes" ? "abc" : "");
  writer.finish();
  const SafetensorsFile file(path());
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.metadata().at("said"), "\"so\"");
  std::string bytes(3, '\0');
  file.read(file.tensors().at("bytes"), bytes);
  EXPECT_EQ(bytes, "abc");
}

TEST_F(SafetensorsWriterTest, AlignsEachTensor) {
  SafetensorsWriter writer(path(), {{"a", TensorDtype::kU8, {3}},
                                    {"b", TensorDtype::kF64, {1}},
                                    {"c", TensorDtype::kBF16, {3}},
                                    {"d", TensorDtype::kF32, {1}}});
  writer.write(std::string(8 + 4 + 6 + 3, 'x'));
  writer.finish();
  const SafetensorsFile file(path());
  for (const auto& [name, tensor] : file.tensors())
    EXPECT_EQ(tensor.offset % (bits_of(tensor.dtype) / 8), 0) << name;
}

TEST_F(SafetensorsWriterTest, RejectsNamesThatNoTensorCanHave) {
  EXPECT_THAT(refusal({{"a\n", TensorDtype::kU8, {1}}}), HasSubstr("not printable"));
  EXPECT_THAT(refusal({{"__metadata__", TensorDtype::kU8, {1}}}), HasSubstr("that name for metadata"));
  EXPECT_THAT(refusal({{"a", TensorDtype::kU8, {1}}, {"a", TensorDtype::kF32, {1}}}),
              HasSubstr("another tensor already has that name"));
}

TEST_F(SafetensorsWriterTest, RejectsSizesBeyondAllFiles) {
  EXPECT_THAT(refusal({{"a", TensorDtype::kF64, {std::int64_t{1} << 62}}}),
              HasSubstr("has more bytes than a file can have"));
  EXPECT_THAT(refusal({{"a", TensorDtype::kU8, {-1}}}), HasSubstr("has more bytes than a file can have"));
  std::vector<NewTensor> tensors;
  for (int i = 0; i < 16; ++i)
    tensors.push_back({std::to_string(i), TensorDtype::kU8, {std::int64_t{1} << 59}});
  EXPECT_THAT(refusal(tensors), HasSubstr("the file would have more bytes"));
}

TEST_F(SafetensorsWriterTest, KeepsTheOldFileUntilTheNewOneIsComplete) {
  write_file(path(), "old");
  {
    SafetensorsWriter writer(path(), {{"a", TensorDtype::kU8, {3}}});
    writer.write("ab");
  }
  EXPECT_EQ(read_file(path()), "old");
  EXPECT_EQ(count_files(), 1);
}

TEST_F(SafetensorsWriterTest, KeepsTheOldFileWhenTheDiskIsFullAndGivesAHint) {
  write_file(path(), "old");
  std::string message;
  std::string hint;
  try {
    const FileSizeLimit full(4096);
    SafetensorsWriter writer(path(), {{"a", TensorDtype::kU8, {100'000}}});
    writer.write(std::string(100'000, 'x'));
  } catch (const Error& error) {
    message = error.what();
    hint = error.hint();
  }
  EXPECT_THAT(message, AllOf(HasSubstr("cannot write"), HasSubstr("the old file is unchanged")));
  EXPECT_THAT(hint, HasSubstr("ulimit -f"));
  EXPECT_EQ(read_file(path()), "old");
  EXPECT_EQ(count_files(), 1);
}

}  // namespace
}  // namespace offprof

#include "engine/tensors/files/offload_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/folder_test.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OffloadFolderTest : public FolderTest {
 protected:
  template <typename Call>
  static std::string refusal(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(OffloadFolderTest, CreatesAMissingFolder) {
  OffloadFolder::open(path_ / "a" / "b");
  EXPECT_TRUE(fs::is_directory(path_ / "a" / "b"));
  write_file((path_ / "file").string(), "x");
  EXPECT_THROW(OffloadFolder::open(path_ / "file"), Error);
}

TEST_F(OffloadFolderTest, NoNameLeavesTheFolder) {
  const auto folder = OffloadFolder::open(path_);
  using namespace std::string_literals;
  for (const std::string& name :
       {"../a"s, "/etc/passwd"s, "a/b"s, "."s, ".."s, "a\\b"s, "a\0b"s, "~"s, "%2e%2e%2f"s, "\n"s}) {
    const fs::path file = folder->file_of(name);
    EXPECT_EQ(file.parent_path(), path_) << name;
    EXPECT_FALSE(file.filename().string().starts_with('.')) << name;
  }
  EXPECT_EQ(folder->file_of("layer.0.weight").filename(), "layer.0.weight.safetensors");
  EXPECT_EQ(folder->file_of("../a").filename(), "%2E.%2Fa.safetensors");
}

TEST_F(OffloadFolderTest, RejectsNamesThatNoFileCanHave) {
  const auto folder = OffloadFolder::open(path_);
  EXPECT_THAT(refusal([&] { folder->file_of(""); }), HasSubstr("the name is empty"));
  EXPECT_THAT(refusal([&] { folder->file_of(std::string(244, 'a')); }), HasSubstr("too long"));
  EXPECT_THAT(refusal([&] { folder->file_of(std::string(85, '/')); }), HasSubstr("too long"));
  write_file(folder->file_of(std::string(243, 'a')).string(), "x");
}

TEST_F(OffloadFolderTest, ListsTheNamesOfItsValues) {
  const auto folder = OffloadFolder::open(path_);
  const std::string odd("..\0/\xff%", 6);
  for (const std::string& name : {odd, std::string("weight")})
    write_file(folder->file_of(name).string(), "x");
  for (const char* other : {"notes.txt", "%zz.safetensors", "%2.safetensors", "%61.safetensors"})
    write_file((path_ / other).string(), "x");
  EXPECT_THAT(folder->names(), ElementsAre(odd, "weight"));
}

TEST_F(OffloadFolderTest, ServesOneUserAtATime) {
  auto folder = OffloadFolder::open(path_);
  EXPECT_THAT(refusal([&] { OffloadFolder::open(path_); }), HasSubstr("is already in use"));
  folder.reset();
  OffloadFolder::open(path_);
}

TEST_F(OffloadFolderTest, RemovesPartialFilesOfAKilledProcess) {
  write_file((path_ / ".offprof-12345-0.tmp").string(), "half");
  write_file((path_ / "w.safetensors").string(), "whole");
  OffloadFolder::open(path_);
  EXPECT_FALSE(fs::exists(path_ / ".offprof-12345-0.tmp"));
  EXPECT_TRUE(fs::exists(path_ / "w.safetensors"));
}

TEST_F(OffloadFolderTest, ANameHasOneUserAtATime) {
  const auto folder = OffloadFolder::open(path_);
  {
    OffloadFolder::Claim claim(folder, "a");
    const OffloadFolder::Claim moved(std::move(claim));
    EXPECT_THAT(refusal([&] { OffloadFolder::Claim(folder, "a"); }), HasSubstr("is named 'a'"));
    OffloadFolder::Claim(folder, "b");
  }
  OffloadFolder::Claim(folder, "a");
}

}  // namespace
}  // namespace offprof

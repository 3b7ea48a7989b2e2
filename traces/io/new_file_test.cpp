#include "traces/io/new_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <iterator>

#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class NewFileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::ptrdiff_t count_files() const { return std::ssize(folder_.files()); }

  const TestFolder folder_;
};

TEST_F(NewFileTest, ReplacesTheOldFileOnlyAtTheCommit) {
  write_file(path("f"), "old");
  NewFile file(path("f"));
  file.write("one ");
  file.write("");
  file.write("two");
  EXPECT_EQ(read_file(path("f")), "old");
  file.commit();
  EXPECT_EQ(read_file(path("f")), "one two");
  EXPECT_EQ(count_files(), 1);
}

TEST_F(NewFileTest, LeavesNoFileWithoutACommit) {
  { NewFile(path("f")).write("half"); }
  EXPECT_EQ(count_files(), 0);
}

TEST_F(NewFileTest, AllowsSeveralFilesAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      NewFile file(path(std::to_string(i)));
      file.write(std::string(1000, static_cast<char>('a' + i)));
      file.commit();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count_files(), 8);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(read_file(path(std::to_string(i))), std::string(1000, static_cast<char>('a' + i)));
}

TEST_F(NewFileTest, RejectsTooManyFilesAtOnce) {
  std::vector<std::unique_ptr<NewFile>> files;
  try {
    for (int i = 0; i < 100; ++i) files.push_back(std::make_unique<NewFile>(path(std::to_string(i))));
    FAIL() << "a hundred at once";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Too many open files"));
  }
  files.clear();
  NewFile(path("f")).commit();
  EXPECT_EQ(count_files(), 1);
}

TEST_F(NewFileTest, RejectsADestinationThatCannotBeReplaced) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THROW(NewFile(path("pipe")), Error);
  EXPECT_THROW(NewFile(folder_.path()), Error);
  EXPECT_THROW(NewFile(path("no/such")), Error);
}

TEST_F(NewFileTest, RecognizesTemporariesByTheirNames) {
  const NewFile file(path("f"));
  const fs::path temporary = fs::directory_iterator(folder_.path())->path();
  EXPECT_TRUE(is_temporary(temporary));
  EXPECT_FALSE(is_temporary(path("f")));
}

}  // namespace
}  // namespace offprof

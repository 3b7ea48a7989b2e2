#include "engine/storage/scratch_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "engine/storage/file_system.h"
#include "tests/support/disk_pattern.h"
#include "tests/support/machine_under_test.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

ScratchFile open_in(const std::string& folder,
                    std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>()) {
  return ScratchFile(folder, DirectIo::kAuto, std::move(calls));
}

Error error_of(const std::string& folder, std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>()) {
  try {
    open_in(folder, std::move(calls));
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error for " << folder;
  return input_error("");
}

TEST(ScratchFile, ReportsAMissingFolder) {
  const Error error = error_of("/nowhere/at/all");
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'/nowhere/at/all'"), HasSubstr("No such file or directory")));
  EXPECT_THAT(error.hint(), HasSubstr("create the folder"));
}

TEST(ScratchFile, ReportsThatTheFolderIsAFile) {
  const TestFolder folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path) << "text";
  EXPECT_THAT(error_of(path).what(), HasSubstr("Not a directory"));
}

TEST(ScratchFile, ReportsAFolderWithoutWritePermission) {
  const TestFolder folder;
  chmod(folder.path().c_str(), 0500);
  const ObeyPermissions as_everybody;
  const Error error = error_of(folder.path());
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), HasSubstr("Permission denied"));
}

TEST(ScratchFile, OnlyItsOwnerMayReadIt) {
  const TestFolder folder;
  const ScratchFile file = open_in(folder.path());
  struct stat status {};
  fstat(file.fd(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(status.st_nlink, 0U);
}

TEST(ScratchFile, ExecutedChildrenDoNotInheritIt) {
  const TestFolder folder;
  const ScratchFile file = open_in(folder.path());
  EXPECT_NE(fcntl(file.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(ScratchFile, AllocatesItsSpaceOnTheDisk) {
  const TestFolder folder;
  ScratchFile file = open_in(folder.path());
  EXPECT_THAT(file.grow(kMiB), IsEmpty());
  struct stat status {};
  fstat(file.fd(), &status);
  EXPECT_EQ(status.st_size, kMiB);
  constexpr Bytes kStatBlock = 512;
  EXPECT_GE(status.st_blocks * kStatBlock, kMiB);
}

/// File system that does not support unnamed files.
class NoTmpfile : public FileCalls {
 public:
  int open(const std::string& path, int flags) override {
    if ((flags & O_TMPFILE) == O_TMPFILE) return -EOPNOTSUPP;
    if (taken > 0) return --taken, -EEXIST;
    return FileCalls::open(path, flags);
  }
  int taken = 0;  ///< number of names that are taken
};

TEST(ScratchFile, UnlinksANamedFileAtOnce) {
  const TestFolder folder;
  auto calls = std::make_shared<NoTmpfile>();
  calls->taken = 3;
  const ScratchFile file = open_in(folder.path(), calls);
  EXPECT_GE(file.fd(), 0);
  EXPECT_TRUE(folder.files().empty());
}

class NoUnlink final : public NoTmpfile {
 public:
  int unlink(const std::string& path) override { return FileCalls::unlink(path), -EIO; }
};

TEST(ScratchFile, AFileThatCannotBeUnlinkedIsAnError) {
  const TestFolder folder;
  EXPECT_THAT(error_of(folder.path(), std::make_shared<NoUnlink>()).what(), HasSubstr("Input/output error"));
}

class NoDirectFlag final : public FileCalls {
 public:
  int set_flags(int fd, int flags) override {
    return (flags & O_DIRECT) != 0 ? -EINVAL : FileCalls::set_flags(fd, flags);
  }
};

class NoDirectWrite final : public FileCalls {
 public:
  ssize_t write(int /*fd*/, const std::byte* /*from*/, Bytes /*bytes*/, Bytes /*offset*/) override {
    return -EINVAL;
  }
};

void expect_buffered(const ScratchFile& file) {
  EXPECT_FALSE(file.facts().direct_io);
  EXPECT_FALSE(file.facts().why_buffered.empty());
  EXPECT_EQ(file.facts().offset_alignment, 1);
  EXPECT_EQ(fcntl(file.fd(), F_GETFL) & O_DIRECT, 0);
}

TEST(ScratchFile, UsesBufferedIoIfTheFileSystemRefusesDirectIo) {
  const TestFolder folder;
  expect_buffered(open_in(folder.path(), std::make_shared<NoDirectFlag>()));
}

TEST(ScratchFile, UsesBufferedIoIfADirectWriteIsRefused) {
  const TestFolder folder;
  expect_buffered(open_in(folder.path(), std::make_shared<NoDirectWrite>()));
}

TEST(ScratchFile, UsesBufferedIoOnRequest) {
  const TestFolder folder;
  const ScratchFile file(folder.path(), DirectIo::kOff, std::make_shared<FileCalls>());
  expect_buffered(file);
}

TEST(ScratchFile, WarnsThatTmpfsIsMemory) {
  constexpr const char* kSharedMemory = "/dev/shm";
  if (const std::string why = why_no_tmpfs(kSharedMemory); !why.empty()) GTEST_SKIP() << why;
  const ScratchFile file = open_in(kSharedMemory);
  EXPECT_THAT(file.facts().warning, HasSubstr("'/dev/shm' is on tmpfs, which is memory"));
  expect_buffered(file);
}

/// Beyond that limit the system would end the process instead of only refusing.
TEST(ScratchFile, StaysBelowTheLimitOnTheFileSize) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_a_child = [] {
    std::fflush(
        nullptr);  // flush now: the log is already longer than the limit, and a sanitizer flushes at exit
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    ScratchFile file = open_in(testing::TempDir());
    const bool fits = file.grow(98'304).empty();
    _exit(fits && file.grow(4096).find("ulimit -f") != std::string::npos ? 7 : 1);
  };
  EXPECT_EXIT(in_a_child(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace offprof

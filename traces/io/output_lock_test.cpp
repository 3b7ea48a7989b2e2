#include "traces/io/output_lock.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/folder_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

class OutputLockTest : public FolderTest {};

/// Returns true if another process can claim the file now.
bool is_free(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      const OutputLock lock(path);
      _exit(0);
    } catch (const Error& error) {
      _exit(error.kind() == ErrorKind::kInput ? 1 : 2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST_F(OutputLockTest, KeepsOtherProcessesFromTheFileUntilItEnds) {
  {
    const OutputLock lock(in_folder("t.json"));
    EXPECT_FALSE(is_free(in_folder("t.json")));
    EXPECT_TRUE(is_free(in_folder("other.json")));
  }
  EXPECT_TRUE(is_free(in_folder("t.json")));
}

TEST_F(OutputLockTest, RecognisesTheFileByEachOfItsNames) {
  std::filesystem::create_directory_symlink(path_, in_folder("link"));
  const OutputLock lock(in_folder("t.json"));
  EXPECT_FALSE(is_free(in_folder("link/t.json")));
  EXPECT_FALSE(is_free(in_folder("./t.json")));
}

TEST_F(OutputLockTest, LeavesNoFile) {
  { const OutputLock lock(in_folder("t.json")); }
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(OutputLockTest, DoesNotClaimADevice) {
  const OutputLock lock("/dev/null");
  EXPECT_TRUE(is_free("/dev/null"));
}

TEST_F(OutputLockTest, SaysThatAnotherProcessWritesTheFile) {
  const OutputLock lock(in_folder("t.json"));
  EXPECT_THAT([&] { const OutputLock second(in_folder("t.json")); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("another process is about to write")));
}

}  // namespace
}  // namespace offprof

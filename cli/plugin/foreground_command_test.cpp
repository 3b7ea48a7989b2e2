#include "cli/plugin/foreground_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

TEST(ForegroundCommand, ReturnsTheExitStatus) {
  EXPECT_EQ(run_in_foreground({"sh", "-c", "exit 7"}, {}), 7);
}

TEST(ForegroundCommand, ReturnsTheSignalPlus128) {
  EXPECT_EQ(run_in_foreground({"sh", "-c", "kill -KILL $$"}, {}), 128 + SIGKILL);
}

TEST(ForegroundCommand, SetsVariablesAndKeepsTheOthers) {
  const TestFolder folder;
  setenv("OFFPROF_TEST_KEPT", "kept", 1);
  setenv("OFFPROF_TEST_SET", "before", 1);
  const std::string script = "printf '%s %s' $OFFPROF_TEST_KEPT $OFFPROF_TEST_SET > " + (folder / "out");
  EXPECT_EQ(run_in_foreground({"sh", "-c", script}, {{"OFFPROF_TEST_SET", "after"}}), 0);
  EXPECT_EQ(read_file(folder / "out"), "kept after");
}

// The shell sends the signal to this process, which passes it on to the shell.
TEST(ForegroundCommand, PassesOnASignalFromAnotherProcess) {
  EXPECT_EQ(run_in_foreground(
                {"sh", "-c", "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.01; done"}, {}),
            9);
}

TEST(ForegroundCommand, DoesNotLeaveSignalsBlocked) {
  run_in_foreground({"true"}, {});
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGTERM));
}

TEST(ForegroundCommand, RejectsAnUnknownCommand) {
  try {
    run_in_foreground({"offprof-no-such-command"}, {});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot run 'offprof-no-such-command'"));
  }
}

}  // namespace
}  // namespace offprof

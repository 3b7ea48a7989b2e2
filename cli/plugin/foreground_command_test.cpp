#include "cli/plugin/foreground_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <future>
#include <thread>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

TEST(ForegroundCommand, ReturnsTheExitStatus) {
  EXPECT_EQ(run_in_foreground({"sh", "-c", "exit 7"}, {}), (ForegroundEnd{7, 0}));
}

TEST(ForegroundCommand, ReturnsTheSignalPlus128) {
  EXPECT_EQ(run_in_foreground({"sh", "-c", "kill -KILL $$"}, {}), (ForegroundEnd{128 + SIGKILL, 0}));
}

TEST(ForegroundCommand, SetsVariablesAndKeepsTheOthers) {
  const TestFolder folder;
  setenv("OFFPROF_TEST_KEPT", "kept", 1);
  setenv("OFFPROF_TEST_SET", "before", 1);
  const std::string script = "printf '%s %s' $OFFPROF_TEST_KEPT $OFFPROF_TEST_SET > " + (folder / "out");
  EXPECT_EQ(run_in_foreground({"sh", "-c", script}, {{"OFFPROF_TEST_SET", "after"}}).status, 0);
  EXPECT_EQ(read_file(folder / "out"), "kept after");
}

TEST(ForegroundCommand, WritesStandardErrorToAFile) {
  const TestFolder folder;
  EXPECT_EQ(run_in_foreground({"sh", "-c", "echo problem >&2"}, {}, CommandOutput::kDiscarded, folder / "err")
                .status,
            0);
  EXPECT_EQ(read_file(folder / "err"), "problem\n");
}

TEST(ForegroundCommand, WritesOutputToStandardErrorIfAsked) {
  const TestFolder folder;
  EXPECT_EQ(run_in_foreground({"sh", "-c", "echo said"}, {}, CommandOutput::kToStandardError, folder / "err")
                .status,
            0);
  EXPECT_EQ(read_file(folder / "err"), "said\n");
}

// The shell sends the signal to this process, which passes it on to the shell.
TEST(ForegroundCommand, PassesOnASignalFromAnotherProcess) {
  EXPECT_EQ(run_in_foreground(
                {"sh", "-c", "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.01; done"}, {}),
            (ForegroundEnd{9, SIGTERM}));
}

// The kernel gives a signal to any thread that does not block it.
TEST(ForegroundCommand, PassesOnASignalThatAnotherThreadReceives) {
  std::promise<void> ended;
  std::thread other([&] { ended.get_future().wait(); });
  EXPECT_EQ(run_in_foreground(
                {"sh", "-c", "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.01; done"}, {}),
            (ForegroundEnd{9, SIGTERM}));
  ended.set_value();
  other.join();
}

// The shell sends SIGINT to the group that this program, the shell and nobody else are in, and SIGTERM to
// this program alone. Signals are passed on in the order of their numbers.
TEST(ForegroundCommand, DoesNotPassOnASignalThatTheWholeGroupReceived) {
  const TestFolder folder;
  const std::string script = "trap 'printf x >> " + (folder / "out") +
                             "' INT; trap 'exit 0' TERM; kill -INT 0; kill -TERM $PPID; "
                             "while :; do sleep 0.01; done";
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);  // a shell cannot trap a signal that it is started without
    _exit(run_in_foreground({"sh", "-c", script}, {}) == ForegroundEnd{0, SIGTERM} ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder / "out"), "x");
}

TEST(ForegroundCommand, DoesNotLeaveSignalsBlocked) {
  run_in_foreground({"true"}, {});
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGTERM));
}

TEST(ForegroundCommand, RunsThisProgramSeveralTimesAtOnce) {
  if (const char* const status = std::getenv("OFFPROF_TEST_EXIT")) std::_Exit(std::atoi(status));
  const TestFolder folder;
  const std::vector<std::string> this_case = {
      "--gtest_filter=ForegroundCommand.RunsThisProgramSeveralTimesAtOnce"};
  const std::vector<int> statuses =
      run_this_program({{this_case, {{"OFFPROF_TEST_EXIT", "7"}}, folder / "first"},
                        {this_case, {{"OFFPROF_TEST_EXIT", "3"}}, folder / "second"}});
  EXPECT_THAT(statuses, testing::ElementsAre(7, 3));
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

#include "cli/plugin/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <iostream>
#include <stdexcept>

namespace offprof {
namespace {

TEST(ChildProcess, ReturnsTheResultOfTheWork) {
  const ChildResult result = run_in_child([] { return std::string(100'000, 'x'); });
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.answer.size(), 100'000U);
}

TEST(ChildProcess, ReturnsTheTextOfAnException) {
  const ChildResult result = run_in_child([]() -> std::string { throw std::runtime_error("no such thing"); });
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.answer, "no such thing");
}

TEST(ChildProcess, SurvivesACrash) {
  const ChildResult result = run_in_child([]() -> std::string {
    std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's own handler would print and exit
    std::raise(SIGSEGV);
    return "";
  });
  EXPECT_FALSE(result.ok);
  EXPECT_THAT(result.answer, testing::HasSubstr("it crashed"));
}

/// If the child outlived the program, this test would hang, since the child holds one end of the pipe.
TEST(ChildProcess, TheChildDoesNotOutliveTheProgram) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t program = fork();
  if (program == 0) {
    run_in_child([&]() -> std::string {
      alarm(0);
      if (write(ends[1], "x", 1) != 1) return "";
      for (;;) pause();
    });
    _exit(0);
  }
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);  // the child has started
  kill(program, SIGTERM);
  waitpid(program, nullptr, 0);
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

TEST(ChildProcess, KeepsTheChildSilent) {
  testing::internal::CaptureStdout();
  run_in_child([] {
    std::cout << "noise" << std::flush;
    return std::string();
  });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace offprof

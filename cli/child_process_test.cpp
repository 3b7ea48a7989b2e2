#include "cli/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>
#include <stdexcept>

namespace offprof {
namespace {

TEST(ChildProcess, ReturnsWhatTheWorkReturns) {
  const ChildResult result = run_in_child([] { return std::string(100'000, 'x'); });
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.answer.size(), 100'000U);
}

TEST(ChildProcess, TellsAnException) {
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

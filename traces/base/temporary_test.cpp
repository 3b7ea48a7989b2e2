// Signals at any moment while a file is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/base/temporary.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using ::testing::ElementsAre;

class SignalTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "f"; }
  std::string content() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> files() const { return folder_.files(); }

  /// Starts a process that writes the file again and again. A second thread is there to receive the signal
  /// while the first one writes. The process has begun to write when this function returns.
  pid_t start_writer() const {
    std::array<int, 2> begun{};
    EXPECT_EQ(::pipe(begun.data()), 0);
    const pid_t writer = ::fork();
    if (writer == 0) write_forever(begun[1]);
    ::close(begun[1]);
    char byte = 0;
    EXPECT_EQ(::read(begun[0], &byte, 1), 1);
    ::close(begun[0]);
    return writer;
  }

  static constexpr std::size_t kBytes = 5000;
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

 private:
  [[noreturn]] void write_forever(int begun) const {
    for (const int signal : kSignals) std::signal(signal, SIG_DFL);  // the parent may ignore some
    exit_cleanly_on_signals();
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    write_file(path(), std::string(kBytes, 'a'));
    if (::write(begun, "x", 1) != 1) ::_exit(1);
    for (char letter = 'b';; letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1))
      write_file(path(), std::string(kBytes, letter));
  }

  TestFolder folder_;
};

TEST_F(SignalTest, LeavesOneWholeFileAtAnyMoment) {
  constexpr int kMoments = 200;
  for (int moment = 0; moment < kMoments; ++moment) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    const pid_t writer = start_writer();
    for (int turn = 0; turn < moment % 50; ++turn) ::sched_yield();
    const int signal = kSignals[static_cast<std::size_t>(moment) % kSignals.size()];
    ASSERT_EQ(::kill(writer, signal), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 128 + signal);
    ASSERT_THAT(files(), ElementsAre("f"));
    const std::string text = content();
    ASSERT_EQ(text, std::string(kBytes, text.at(0)));
  }
}

TEST_F(SignalTest, TreatsALimitOnFileSizeAsAFullDisk) {
  write_file(path(), "old");
  const auto limited = [&] {
    std::signal(SIGXFSZ, SIG_DFL);
    exit_cleanly_on_signals();
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(path(), std::string(kBytes, 'x'));
    } catch (const Error& error) {
      ::_exit(error.hint().find("ulimit -f") == std::string::npos ? 1 : 7);
    }
  };
  EXPECT_EXIT(limited(), ::testing::ExitedWithCode(7), "");
  EXPECT_EQ(content(), "old");
  EXPECT_THAT(files(), ElementsAre("f"));
}

}  // namespace
}  // namespace offprof

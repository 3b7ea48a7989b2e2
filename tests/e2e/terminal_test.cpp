// Output that appears only on a terminal.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "e2e/offprof_process.h"

namespace offprof {
namespace {

/// A pseudo terminal whose output is read by the test.
class PseudoTerminal {
 public:
  PseudoTerminal() : shown_by_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (shown_by_ < 0 || grantpt(shown_by_) != 0 || unlockpt(shown_by_) != 0)
      throw std::runtime_error("no pseudo terminal");
    path_ = ptsname(shown_by_);
    kept_open_ = open(path_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  ~PseudoTerminal() {
    close(kept_open_);
    close(shown_by_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  const std::string& path() const { return path_; }

  /// Waits until the terminal has received `text`. Returns false if the output ends before that.
  bool wait_for(const std::string& text) {
    constexpr int kForEver = 600'000;
    while (text_.find(text) == std::string::npos)
      if (!read_some(kForEver)) return false;
    return true;
  }
  /// Returns everything that the terminal has received.
  std::string text() {
    while (read_some(0)) {
    }
    return text_;
  }

 private:
  bool read_some(int timeout_ms) {
    pollfd ready = {shown_by_, POLLIN, 0};
    std::array<char, 4096> piece{};
    if (poll(&ready, 1, timeout_ms) != 1) return false;
    const ssize_t count = read(shown_by_, piece.data(), piece.size());
    if (count <= 0) return false;
    text_.append(piece.data(), static_cast<std::size_t>(count));
    return true;
  }

  int shown_by_;
  int kept_open_ = -1;
  std::string path_, text_;
};

TEST(OnATerminal, CtrlCEndsTheProgressLine) {
  PseudoTerminal terminal;
  const std::string line =
      "exec " + in_quotes(program_path().string()) + " run " + in_quotes(model_path("qwen2.pt")) +
      " --input " + in_quotes("@" + model_path("qwen2.inputs")) + " --steps 1000000 2>" + terminal.path();
  OffprofProcess program({"-c", line}, std::nullopt, "/bin/sh");
  ASSERT_TRUE(terminal.wait_for("recording with nothing offloaded")) << terminal.text();
  program.send(SIGINT);
  EXPECT_EQ(program.finish().status, 130);
  const std::string text = terminal.text();
  EXPECT_TRUE(text.ends_with("\r\n")) << text;
  const std::size_t last_wipe = text.rfind("\r\033[K");
  ASSERT_NE(last_wipe, std::string::npos);
  EXPECT_EQ(text.find('\n', last_wipe), text.size() - 1) << "ends the line once, and prints nothing more";
}

}  // namespace
}  // namespace offprof

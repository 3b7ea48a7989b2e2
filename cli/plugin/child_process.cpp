#include "cli/plugin/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <exception>

namespace offprof {
namespace {

// Time limit for the child: a library that hangs while it is opened must not hang the program.
constexpr unsigned kPatienceSeconds = 120;

void write_all(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  while ((count = read(descriptor, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

void be_silent() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

/// Makes the kernel kill the child when its parent ends.
void go_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent has already ended
}

[[noreturn]] void run_child(int answer, pid_t parent, const std::function<std::string()>& work) {
  go_with(parent);
  be_silent();
  alarm(kPatienceSeconds);
  int status = 1;
  try {
    write_all(answer, work());
    status = 0;
  } catch (const std::exception& error) {
    write_all(answer, error.what());
  }
  _exit(status);  // skips the destructors of libraries that may be broken
}

std::string death(int status) {
  if (!WIFSIGNALED(status)) return "it exited without an answer";
  if (WTERMSIG(status) == SIGALRM) return "it timed out";
  return std::string("it crashed: ") + strsignal(WTERMSIG(status));
}

}  // namespace

ChildResult run_in_child(const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {false, std::strerror(errno)};
  const pid_t parent = getpid(), child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return {false, std::strerror(errno)};
  }
  if (child == 0) run_child(ends[1], parent, work);
  close(ends[1]);
  std::string answer = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const bool answered = ok || (WIFEXITED(status) && !answer.empty());
  return {ok, answered ? answer : death(status)};
}

}  // namespace offprof

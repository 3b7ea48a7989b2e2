#include "e2e/offprof_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>
#include <utility>

namespace offprof {
namespace {

[[noreturn]] void become_program(const std::string& path, const std::vector<std::string>& arguments,
                                 std::optional<rlim_t> file_size_limit) {
  // The test runner may ignore some signals, as nohup does.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
  if (file_size_limit) {
    std::signal(SIGXFSZ, SIG_IGN);  // makes the write fail instead
    const rlimit limit{*file_size_limit, *file_size_limit};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(path.c_str(), argv.data());
  _exit(127);
}

/// Returns false at the end of the stream, and closes it.
bool read_some(int& stream, std::string& text) {
  std::array<char, 4096> piece{};
  const ssize_t count = read(stream, piece.data(), piece.size());
  if (count > 0) {
    text.append(piece.data(), static_cast<std::size_t>(count));
    return true;
  }
  close(stream);
  stream = -1;
  return false;
}

}  // namespace

OffprofProcess::OffprofProcess(const std::vector<std::string>& arguments,
                               std::optional<rlim_t> file_size_limit, const std::string& path,
                               const std::string& out_path) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  pid_ = fork();
  if (pid_ == 0) {
    dup2(out_path.empty() ? out[1] : open(out_path.c_str(), O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    become_program(path.empty() ? OFFPROF_PROGRAM : path, arguments, file_size_limit);
  }
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

OffprofProcess::~OffprofProcess() {
  if (pid_ > 0) {
    send(SIGKILL);
    finish();
  }
}

bool OffprofProcess::read_more() {
  std::array<pollfd, 2> streams = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};  // poll ignores -1
  if (out_ < 0 && err_ < 0) return false;
  poll(streams.data(), streams.size(), -1);
  if (streams[0].revents != 0) read_some(out_, ended_.out);
  if (streams[1].revents != 0) read_some(err_, ended_.err);
  return true;
}

void OffprofProcess::wait_for_error_text(const std::string& text) {
  while (ended_.err.find(text) == std::string::npos && read_more()) {
  }
}

void OffprofProcess::send(int signal) {
  kill(pid_, signal);
}

void OffprofProcess::stop_reading() {
  for (int* const stream : {&out_, &err_})
    if (*stream >= 0) close(std::exchange(*stream, -1));
}

Ended OffprofProcess::finish() {
  while (read_more()) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  ended_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended_;
}

Ended run_program(const std::vector<std::string>& arguments, std::optional<rlim_t> file_size_limit) {
  return OffprofProcess(arguments, file_size_limit).finish();
}

Ended run_program_at(const std::string& path, const std::vector<std::string>& arguments) {
  return OffprofProcess(arguments, std::nullopt, path).finish();
}

std::filesystem::path program_path() {
  return OFFPROF_PROGRAM;
}

std::string unwrapped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    const bool after_break = !result.empty() && result.back() == '\n';
    if (letter == ' ' && after_break) continue;
    if (after_break) result.back() = ' ';
    result += letter;
  }
  return result;
}

std::string in_quotes(const std::string& word) {
  return "'" + word + "'";
}

std::string model_path(const std::string& name) {
  return std::string(OFFPROF_MODELS) + "/" + name;
}

}  // namespace offprof

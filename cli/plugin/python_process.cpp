#include "cli/plugin/python_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cli/plugin/engine_loader.h"
#include "traces/base/descriptor.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Status of a child whose program cannot be started, as in shells.
constexpr int kCannotStart = 127;

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

bool is_in_path(const std::string& name) {
  const char* const folders = std::getenv("PATH");
  if (folders == nullptr) return false;
  std::string_view rest = folders;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (is_program(std::filesystem::path(rest.substr(0, colon)) / name)) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

/// Ignores SIGINT while it exists.
class InterruptsIgnored {
 public:
  InterruptsIgnored() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &before_);
  }
  ~InterruptsIgnored() { sigaction(SIGINT, &before_, nullptr); }
  InterruptsIgnored(const InterruptsIgnored&) = delete;
  InterruptsIgnored& operator=(const InterruptsIgnored&) = delete;

 private:
  struct sigaction before_ {};
};

/// Starts the program in place of this forked process.
[[noreturn]] void become(std::vector<char*> arguments, const std::string& progress, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotStart);  // the parent has already ended
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  setenv(kProgressVariable, progress.c_str(), /*overwrite=*/1);
  execvp(arguments.front(), arguments.data());
  _exit(kCannotStart);
}

/// Calls `progress` with each line until the other end is closed.
void read_lines(int descriptor, const std::function<void(const std::string&)>& progress) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
      progress(text.substr(0, end));
  }
}

ProcessEnd wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

Error cannot_start(const std::string& program, int error) {
  return environment_error(fmt::format("cannot start {}: {}", program, std::strerror(error)));
}

}  // namespace

std::string choose_python(const std::string& given) {
  std::string python = given;
  const char* const environment = std::getenv("VIRTUAL_ENV");
  if (python.empty() && environment != nullptr)
    python = (std::filesystem::path(environment) / "bin" / "python").string();
  if (python.empty()) python = "python3";
  const bool is_there = python.find('/') != std::string::npos ? is_program(python) : is_in_path(python);
  if (is_there) return python;
  throw environment_error(fmt::format("there is no Python at {}", python),
                          "Name the Python that the program runs in: --python PATH");
}

std::string python_launcher() {
  const std::filesystem::path folder = program_folder();
  const std::filesystem::path places[] = {folder / "python", folder.parent_path() / "lib" / "offprof" / "python"};
  for (const std::filesystem::path& place : places)
    if (const auto launcher = place / "offprof" / "launcher.py"; std::filesystem::exists(launcher))
      return launcher.string();
  throw environment_error(
      fmt::format("this build of offprof has no Python package: it is not in {}", places[0].string()),
      "Programs in Python need the engine and the headers of Python. In offprof's source folder run: "
      "scripts/setup.sh --python && cmake --preset release && cmake --build --preset release");
}

ProcessEnd run_process(const std::vector<std::string>& command,
                       const std::function<void(const std::string& line)>& progress) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw cannot_start(command.front(), errno);
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  fcntl(reading.get(), F_SETFD, FD_CLOEXEC);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string descriptor = std::to_string(writing.get());
  const InterruptsIgnored ignored;
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw cannot_start(command.front(), errno);
  if (child == 0) become(std::move(arguments), descriptor, parent);
  writing.close();
  read_lines(reading.get(), progress);
  return wait_for(child);
}

ScratchFolder::ScratchFolder() {
  std::error_code error;
  path_ = (std::filesystem::temp_directory_path(error) / "offprof-XXXXXX").string();
  if (error || mkdtemp(path_.data()) == nullptr)
    throw environment_error(fmt::format("cannot create a temporary folder: {}", std::strerror(errno)),
                            "Set TMPDIR to a folder that can be written to.");
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace offprof

#include "cli/plugin/foreground_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>

#include "traces/base/descriptor.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
/// Signals that main handles or ignores (exit_cleanly_on_signals). The command must not inherit that.
constexpr int kRestored[] = {SIGPIPE, SIGXFSZ};

/// Thread that takes the held signals, while there are HeldSignals.
pthread_t holder;

/// Another thread, such as one of a library, has received the signal, which would otherwise end the process.
void hand_to_holder(int signal) {
  pthread_kill(holder, signal);
}

/// Signals that wait_for takes one by one; holds them back from this process during its lifetime. For one
/// thread at a time.
class HeldSignals {
 public:
  HeldSignals() {
    holder = pthread_self();
    sigemptyset(&held_);
    sigaddset(&held_, SIGCHLD);
    for (const int signal : kPassedOn) sigaddset(&held_, signal);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      sigaction(kPassedOn[i], nullptr, &actions_[i]);
      if (actions_[i].sa_handler == SIG_IGN) continue;  // the command inherits that
      struct sigaction handing {};
      handing.sa_handler = hand_to_holder;
      handing.sa_flags = SA_RESTART;
      sigaction(kPassedOn[i], &handing, nullptr);
    }
  }
  ~HeldSignals() {
    for (std::size_t i = 0; i < actions_.size(); ++i) sigaction(kPassedOn[i], &actions_[i], nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// Waits for the next signal.
  siginfo_t next() const {
    siginfo_t info{};
    while (sigwaitinfo(&held_, &info) < 0) {
    }
    return info;
  }
  /// Waits for the next signal for a tenth of a second; nullopt: none came.
  std::optional<siginfo_t> next_soon() const {
    constexpr timespec kTenthOfASecond{0, 100'000'000};
    siginfo_t info{};
    if (sigtimedwait(&held_, &info, &kTenthOfASecond) < 0) return std::nullopt;
    return info;
  }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t held_{}, before_{};
  std::array<struct sigaction, std::size(kPassedOn)> actions_{};  ///< before, of each of kPassedOn
};

/// Environment of this process with some variables set, as posix_spawn expects it.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (!variables.contains(text.substr(0, text.find('=')))) entries_.push_back(text);
    }
    for (const auto& [name, value] : variables) entries_.push_back(fmt::format("{}={}", name, value));
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  char* const* data() { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

/// Returns what to do about a program that is not on the PATH.
std::string how_to_find(const std::string& program) {
  if (program == "torchrun")
    return "Without the environment that has it: python -m torch.distributed.run in its place.";
  return "Check the command's name and PATH.";
}

pid_t spawn(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables,
            const sigset_t& mask, CommandOutput output, const std::string& error_path) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  sigset_t restored;
  sigemptyset(&restored);
  for (const int signal : kRestored) sigaddset(&restored, signal);
  posix_spawnattr_setsigdefault(&attributes, &restored);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output == CommandOutput::kDiscarded)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (!error_path.empty())
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, error_path.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, S_IRUSR | S_IWUSR);
  if (output == CommandOutput::kToStandardError)
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), Environment(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return child;
  throw input_error(fmt::format("cannot run '{}': {}", words.front(), std::strerror(error)),
                    error == ENOENT ? how_to_find(words.front()) : "");
}

/// Process in the group of this process that only receives signals. A signal that somebody sends to the whole
/// group reaches it too, and so has reached the command.
class GroupWitness {
 public:
  /// Without a witness, if there cannot be one, signals seem to be sent to this process alone.
  explicit GroupWitness(const HeldSignals& signals) {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    seen_.emplace(ends[0]);
    const Descriptor report(ends[1]);
    const pid_t parent = getpid();
    process_ = fork();
    if (process_ == 0) watch(report.get(), parent, signals);
  }
  ~GroupWitness() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  /// Returns true if the witness has received that signal, too. The kernel sends a signal to a group at once,
  /// so it need not wait for long.
  bool has_seen(int signal) const {
    constexpr int kPatienceMs = 100;
    if (process_ < 0) return false;
    pollfd ready{seen_->get(), POLLIN, 0};
    unsigned char seen = 0;
    while (::poll(&ready, 1, kPatienceMs) == 1 && ::read(seen_->get(), &seen, 1) == 1)
      if (seen == signal) return true;
    return false;
  }

 private:
  [[noreturn]] static void watch(int report, pid_t parent, const HeldSignals& signals) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);  // the parent has already ended
    for (;;) {
      const auto signal = static_cast<unsigned char>(signals.next().si_signo);
      if (::write(report, &signal, 1) != 1) _exit(0);
    }
  }

  std::optional<Descriptor> seen_;  ///< bytes, each a signal
  pid_t process_ = -1;
};

/// Returns true if another process sent the signal, and not a terminal.
bool was_sent(const siginfo_t& info) {
  return info.si_code <= 0;
}

/// Waits until all children have ended. Returns their ends in the same order.
std::vector<ForegroundEnd> wait_for(const std::vector<pid_t>& children, const HeldSignals& signals,
                                    const GroupWitness& group) {
  std::vector<ForegroundEnd> ends(children.size());
  std::vector<char> has_ended(children.size(), 0);
  int last_signal = 0;
  while (std::ranges::count(has_ended, 0) > 0) {
    const std::optional<siginfo_t> info = signals.next_soon();
    const bool is_signal = info && info->si_signo != SIGCHLD;
    if (is_signal) last_signal = info->si_signo;
    const bool passes_on = is_signal && !group.has_seen(info->si_signo) && was_sent(*info);
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (has_ended[i] != 0) continue;
      if (passes_on) ::kill(children[i], info->si_signo);
      // Without a signal too: another thread, such as one of LibTorch, may have taken that of the child.
      int status = 0;
      if (is_signal || waitpid(children[i], &status, WNOHANG) != children[i]) continue;
      ends[i].status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      has_ended[i] = 1;
    }
  }
  for (ForegroundEnd& end : ends) end.signal = last_signal;
  return ends;
}

std::vector<ForegroundEnd> run_all(const std::vector<ProgramRun>& commands, CommandOutput output) {
  ::signal(SIGCHLD, SIG_DFL);  // a parent that ignores it would take the exit status away
  const HeldSignals signals;
  const GroupWitness group(signals);
  std::vector<pid_t> children;
  for (const auto& [words, variables, error_path] : commands)
    children.push_back(spawn(words, variables, signals.before(), output, error_path));
  return wait_for(children, signals, group);
}

}  // namespace

ForegroundEnd run_in_foreground(const std::vector<std::string>& words,
                                const std::map<std::string, std::string>& variables, CommandOutput output,
                                const std::string& error_path) {
  return run_all({{words, variables, error_path}}, output).front();
}

std::vector<int> run_this_program(std::vector<ProgramRun> runs) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  for (ProgramRun& run : runs) run.words.insert(run.words.begin(), program);
  std::vector<int> statuses;
  for (const ForegroundEnd& end : run_all(runs, CommandOutput::kDiscarded)) {
    if (end.signal != 0) throw EndedBySignal{end.signal};
    statuses.push_back(end.status);
  }
  return statuses;
}

}  // namespace offprof

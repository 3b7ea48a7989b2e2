#include "traces/base/temporary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>

namespace offprof {
namespace {

constexpr std::string_view kBeginning = ".offprof-";
constexpr std::string_view kEnd = ".tmp";
/// Upper limit for the number of threads that write files at once.
constexpr int kMostTemporaries = 64;

/// Entry for a temporary file that a signal must remove.
struct Slot {
  std::atomic<bool> taken = false;
  std::array<char, PATH_MAX> path{};  ///< empty: no file; only the owner of the slot sets it
};
std::array<Slot, kMostTemporaries> g_slots;
/// Number of threads that are creating a file whose name is not yet recorded.
std::atomic<int> g_being_made = 0;
/// True if a signal is about to end the process.
std::atomic<bool> g_is_ending = false;
/// True if standard error ends in the middle of a line.
std::atomic<bool> g_line_is_open = false;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "or a signal's handler may not use it");

/// Blocks for good if a signal handler of another thread is about to end the process.
void wait_for_the_end() {
  while (g_is_ending) ::pause();
}

/// Takes a free slot and returns its index; -1 if all are taken.
int take_place() {
  for (int i = 0; i < kMostTemporaries; ++i)
    if (!g_slots.at(i).taken.exchange(true)) return i;
  return -1;
}

void remember_temporary(int slot, const std::string& path) {
  auto& remembered = g_slots.at(slot).path;
  const std::size_t length = std::min(path.size(), remembered.size() - 1);
  path.copy(remembered.data(), length);
  remembered[length] = '\0';
}

void leave_place(int slot) {
  g_slots.at(slot).path[0] = '\0';
  g_slots.at(slot).taken = false;
}

/// Guard for the creation of a file whose name no signal handler knows yet. While it lives, this thread
/// receives no signal, and a handler on another thread waits.
class Making {
 public:
  Making() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    ++g_being_made;
    if (!g_is_ending) return;
    --g_being_made;
    wait_for_the_end();
  }
  ~Making() {
    --g_being_made;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  sigset_t before_{};
};

extern "C" void end_on_signal(int signal) {
  g_is_ending = true;
  while (g_being_made > 0) {
  }
  for (const Slot& slot : g_slots)
    if (slot.path[0] != '\0') ::unlink(slot.path.data());
  if (g_line_is_open) [[maybe_unused]]
    const auto written = ::write(STDERR_FILENO, "\n", 1);
  ::_exit(128 + signal);
}

}  // namespace

bool is_temporary(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(kBeginning) && name.ends_with(kEnd);
}

Temporary::Temporary(const std::filesystem::path& folder) : place_(take_place()) {
  const Making making;
  if (place_ < 0)
    error_ = EMFILE;
  else
    make(folder);
  if (fd_ >= 0) remember_temporary(place_, path_.string());
}

void Temporary::make(const std::filesystem::path& folder) {
  for (int attempt = 0; fd_ < 0 && (attempt == 0 || errno == EEXIST); ++attempt) {
    path_ = folder / fmt::format("{}{}-{}{}", kBeginning, ::getpid(), attempt, kEnd);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  error_ = fd_ < 0 ? errno : 0;
}

Temporary::~Temporary() {
  if (error_ == 0 && !renamed_) ::unlink(path_.c_str());
  if (place_ >= 0) leave_place(place_);
}

bool Temporary::rename_to(const std::string& path) {
  renamed_ = ::rename(path_.c_str(), path.c_str()) == 0;
  if (!renamed_) wait_for_the_end();  // if a handler removed the file, that is not an error to report
  return renamed_;
}

void set_line_is_open(bool is_open) {
  g_line_is_open = is_open;
}

void exit_cleanly_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // nohup and background jobs rely on it
    action = {};
    action.sa_handler = end_on_signal;
    ::sigaction(signal, &action, nullptr);
  }
  ::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit then fails as on a full disk
}

}  // namespace offprof

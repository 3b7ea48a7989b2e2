#include "traces/temporary.h"

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

/// The temporary that a signal must remove; empty when there is none. Only the thread that writes a file sets
/// it.
std::array<char, PATH_MAX> g_temporary{};
/// That thread is making a file whose name is not there yet.
std::atomic<bool> g_is_being_made = false;
/// A signal is about to end the process.
std::atomic<bool> g_is_ending = false;
static_assert(std::atomic<bool>::is_always_lock_free, "or a signal's handler may not use it");

/// Where another thread's handler is about to end the process, this one does nothing more.
void wait_for_the_end() {
  while (g_is_ending) ::pause();
}

void remember_temporary(const std::string& path) {
  const std::size_t length = std::min(path.size(), g_temporary.size() - 1);
  path.copy(g_temporary.data(), length);
  g_temporary[length] = '\0';
}

void forget_temporary() {
  g_temporary[0] = '\0';
}

/// While it lives a file may be made whose name no signal's handler knows yet: no signal comes to this
/// thread, and a handler on another waits.
class Making {
 public:
  Making() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    g_is_being_made = true;
    if (!g_is_ending) return;
    g_is_being_made = false;
    wait_for_the_end();
  }
  ~Making() {
    g_is_being_made = false;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  sigset_t before_{};
};

extern "C" void end_on_signal(int signal) {
  g_is_ending = true;
  while (g_is_being_made) {
  }
  if (g_temporary[0] != '\0') ::unlink(g_temporary.data());
  ::_exit(128 + signal);
}

}  // namespace

Temporary::Temporary(const std::filesystem::path& folder) {
  const Making making;
  make(folder);
  if (fd_ >= 0) remember_temporary(path_.string());
}

void Temporary::make(const std::filesystem::path& folder) {
  for (int attempt = 0; fd_ < 0 && (attempt == 0 || errno == EEXIST); ++attempt) {
    path_ = folder / fmt::format(".offprof-{}-{}.tmp", ::getpid(), attempt);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  error_ = fd_ < 0 ? errno : 0;
}

Temporary::~Temporary() {
  if (error_ == 0 && !renamed_) ::unlink(path_.c_str());
  forget_temporary();
}

bool Temporary::rename_to(const std::string& path) {
  renamed_ = ::rename(path_.c_str(), path.c_str()) == 0;
  if (!renamed_) wait_for_the_end();  // a handler may have removed it: that is no error to tell
  return renamed_;
}

void exit_cleanly_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // as nohup and background jobs ask
    action = {};
    action.sa_handler = end_on_signal;
    ::sigaction(signal, &action, nullptr);
  }
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a write that fails, as on a full disk
}

}  // namespace offprof

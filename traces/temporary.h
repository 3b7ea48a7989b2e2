#pragma once

#include <filesystem>
#include <string>
#include <utility>

namespace offprof {

/// A new file beside the one that is written, gone at the end of scope unless it was renamed, and gone too
/// where a signal ends the program before that: see exit_cleanly_on_signals. Only a kill leaves it. Threads
/// may have one each, up to 64 in the process.
class Temporary {
 public:
  explicit Temporary(const std::filesystem::path& folder);
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  /// Who takes it closes it.
  int take_fd() { return std::exchange(fd_, -1); }
  /// Why there is none; 0: there is one.
  int error() const { return error_; }
  /// False with errno.
  bool rename_to(const std::string& path);

 private:
  void make(const std::filesystem::path& folder);

  int place_;  ///< in the table of what a signal must remove; -1: it is full
  std::filesystem::path path_;
  int fd_ = -1;
  int error_ = 0;
  bool renamed_ = false;
};

/// From here on SIGINT, SIGTERM, SIGHUP and SIGPIPE remove the temporary that is being written, if any, and
/// end the process at once with status 128 + signal (130 for Ctrl-C): no file is ever half-written, however
/// long a step runs, and nothing is left beside it. A limit on the size of files is a full disk.
void exit_cleanly_on_signals();

/// Says whether a line without its end is on standard error, as a progress line on a terminal: a signal that
/// ends the program ends it, so that the shell's prompt begins a line of its own.
void set_line_is_open(bool is_open);

/// Whether a file of that name is a temporary, of whatever process.
bool is_temporary(const std::filesystem::path& path);

}  // namespace offprof

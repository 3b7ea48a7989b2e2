#pragma once

#include <filesystem>
#include <string>
#include <utility>

namespace offprof {

/// New file beside the file to be written. The destructor removes it unless it was renamed, and so does a
/// signal that ends the process earlier: see exit_cleanly_on_signals. Only a kill leaves it behind. Each
/// thread may have one, up to 64 per process.
class Temporary {
 public:
  explicit Temporary(const std::filesystem::path& folder);
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  /// Returns the file descriptor; the caller must close it.
  int take_fd() { return std::exchange(fd_, -1); }
  /// Returns the reason why the file could not be created; 0 if it was.
  int error() const { return error_; }
  /// Renames the file. Returns false and sets errno on failure.
  bool rename_to(const std::string& path);

 private:
  void make(const std::filesystem::path& folder);

  int place_;  ///< index in the table of files that a signal must remove; -1: the table is full
  std::filesystem::path path_;
  int fd_ = -1;
  int error_ = 0;
  bool renamed_ = false;
};

/// Installs handlers for SIGINT, SIGTERM, SIGHUP and SIGPIPE. They remove the temporary files and end the
/// process at once with status 128 + signal (130 for Ctrl-C), so that no half-written file remains, however
/// long a step runs. Also ignores SIGXFSZ, so that a limit on file size looks like a full disk.
void exit_cleanly_on_signals();

/// Records whether standard error ends with an unfinished line, like a progress line on a terminal. A signal
/// that ends the process then ends the line, so that the shell's prompt starts on a new line.
void set_line_is_open(bool is_open);

/// Returns true if the name is that of a temporary file, of any process.
bool is_temporary(const std::filesystem::path& path);

}  // namespace offprof

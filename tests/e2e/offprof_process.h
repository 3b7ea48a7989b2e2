#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace offprof {

/// Result of a process of the built program.
struct Ended {
  int status = -1;  ///< exit status; 128 + signal if a signal ended it
  std::string out;
  std::string err;
};

/// A running process of the built program.
class OffprofProcess {
 public:
  /// `arguments` does not include the program's name. `file_size_limit` is the maximum size of any file, to
  /// imitate a full disk. `path` is the path of a copy of the program; if empty, the built one runs.
  /// `out_path` is the file for standard output; if empty, Ended::out receives it.
  explicit OffprofProcess(const std::vector<std::string>& arguments,
                          std::optional<rlim_t> file_size_limit = std::nullopt, const std::string& path = {},
                          const std::string& out_path = {});
  ~OffprofProcess();
  OffprofProcess(const OffprofProcess&) = delete;
  OffprofProcess& operator=(const OffprofProcess&) = delete;

  /// Waits until standard error contains `text` or the program has ended.
  void wait_for_error_text(const std::string& text);
  void send(int signal);
  /// Closes the pipes, so that nobody reads the program's output from now on.
  void stop_reading();
  Ended finish();

 private:
  bool read_more();

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Ended ended_;
};

/// Runs the built program to its end.
Ended run_program(const std::vector<std::string>& arguments,
                  std::optional<rlim_t> file_size_limit = std::nullopt);

/// Runs a copy of the program to its end.
Ended run_program_at(const std::string& path, const std::vector<std::string>& arguments);

/// Returns the path of the built program; its libraries are in the same folder.
std::filesystem::path program_path();

/// Replaces each line break and the blanks after it by one blank, which undoes the wrapping at the terminal's
/// width.
std::string unwrapped(const std::string& text);

/// Puts `word` into quotes for a shell. `word` must not contain quotes.
std::string in_quotes(const std::string& word);

/// Returns the path of a model in tests/models.
std::string model_path(const std::string& name);

}  // namespace offprof

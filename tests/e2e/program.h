#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace offprof {

/// How the built program ended.
struct Ended {
  int status = -1;  ///< exit status; 128 + signal where a signal ended it
  std::string out;
  std::string err;
};

/// The built program, running.
class Program {
 public:
  /// `arguments` without the program's name. `file_size_limit`: no file may grow beyond it, as on a full
  /// disk. `path`: of a copy; empty for the one that was built. `out_path`: where standard output goes;
  /// empty: to Ended::out.
  explicit Program(const std::vector<std::string>& arguments,
                   std::optional<rlim_t> file_size_limit = std::nullopt, const std::string& path = {},
                   const std::string& out_path = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Returns when standard error holds `text`, or the program has ended.
  void wait_for_error_text(const std::string& text);
  void send(int signal);
  /// Nobody reads what the program says from here on.
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

/// The built program, and the folder in which its libraries are.
std::filesystem::path program_path();

/// `text` with each line break, and the blanks behind it, as one blank: as it was before it was broken at the
/// terminal's width.
std::string unwrapped(const std::string& text);

/// `word` as a shell reads it back. It has no quotes.
std::string in_quotes(const std::string& word);

/// A model of tests/models.
std::string model_path(const std::string& name);

}  // namespace offprof

#pragma once

#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"

namespace offprof {

/// What a command line printed, and its exit status. For tests.
struct CliRun {
  int status = 0;
  std::string out;
  std::string err;
};

/// Runs `offprof WORDS...` in this process, to streams that are no terminals unless `terminal` says so.
inline CliRun run_words(const std::vector<std::string>& words, const Terminal& terminal = {}) {
  std::vector<const char*> argv = {"offprof"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  const int status = run_cli(static_cast<int>(argv.size()), argv.data(), out, err, terminal);
  return {status, out.str(), err.str()};
}

/// Text with every run of blanks and line breaks as one blank: where a message is wrapped depends on the
/// paths in it.
inline std::string unwrapped(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// A folder of a test's own that goes when the test is done.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("offprof_" + name + "_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace offprof

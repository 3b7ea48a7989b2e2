#pragma once

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"

namespace offprof {

/// Output and exit status of a command line, for tests.
struct CliRun {
  int status = 0;
  std::string out;
  std::string err;
};

/// Runs `offprof WORDS...` in this process. The output streams are not terminals unless `terminal` says so.
inline CliRun run_words(const std::vector<std::string>& words, const Terminal& terminal = {}) {
  std::vector<const char*> argv = {"offprof"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  const int status = run_cli(static_cast<int>(argv.size()), argv.data(), out, err, terminal);
  return {status, out.str(), err.str()};
}

/// Replaces each run of blanks and line breaks by one blank. Tests need this because the line breaks of a
/// message depend on the paths in it.
inline std::string unwrapped(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// A temporary folder for a test, removed by the destructor.
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

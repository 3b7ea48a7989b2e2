#pragma once

#include <functional>
#include <string>
#include <vector>

namespace offprof {

/// Returns the Python that runs programs: `given`, or that of the active virtual environment (VIRTUAL_ENV), or
/// `python3`. The result is a path or a name to be searched in PATH. Throws Error (environment) if there is no such
/// program.
std::string choose_python(const std::string& given);

/// Returns the launcher of the Python package that belongs to the running program. Throws Error (environment) if
/// this build has no Python package.
std::string python_launcher();

/// End of a process.
struct ProcessEnd {
  int status = 0;  ///< exit status; meaningless if a signal ended the process
  int signal = 0;  ///< 0: it exited
};

/// Environment variable with the descriptor to which the process may write one line per activity.
inline constexpr const char* kProgressVariable = "OFFPROF_PROGRESS_FD";

/// Runs a program to its end, with the standard streams of this process. `progress` is called with each line that
/// the process writes to the descriptor in kProgressVariable. SIGINT is left to the process, which a terminal sends
/// it to as well. The process ends with this one. Throws Error (environment) if it cannot be started.
ProcessEnd run_process(const std::vector<std::string>& command,
                       const std::function<void(const std::string& line)>& progress);

/// Folder for temporary files, which is removed with them on destruction.
class ScratchFolder {
 public:
  /// Throws Error (environment) if the system's folder for temporary files cannot be written to.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// Returns the path of a file of that name in the folder.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace offprof

#pragma once

#include <map>
#include <string>
#include <vector>

namespace offprof {

/// Destination of a command's standard output.
enum class CommandOutput { kInherited, kDiscarded, kToStandardError };

/// End of a command.
struct ForegroundEnd {
  int status = 0;  ///< its exit status, or 128 + the signal that ended it
  int signal = 0;  ///< last signal that this process received while the command ran; 0: none

  bool operator==(const ForegroundEnd&) const = default;
};

/// Thrown by callers of run_in_foreground if a signal ended the command, or made it end, so that this program
/// ends with the signal's status too.
struct EndedBySignal {
  int signal = 0;
};

/// Runs a command of the user in place of this program and waits for its end. `words` is the command and its
/// arguments; the command is looked up in PATH. It inherits the standard streams, except for another `output`
/// and for `error_path`, the file for its standard error (empty: inherited), and the
/// environment, in which `variables` are set. Signals that another process sends to this process alone while
/// the command runs (SIGINT, SIGQUIT, SIGTERM, SIGHUP) are sent on to the command. A signal that a terminal
/// or another process sends to the process group has reached the command already. The caller may have other
/// threads, but only one of them may call this at a time.
///
/// Throws Error (input) if there is no such command or it cannot be executed.
ForegroundEnd run_in_foreground(const std::vector<std::string>& words,
                                const std::map<std::string, std::string>& variables,
                                CommandOutput output = CommandOutput::kInherited,
                                const std::string& error_path = {});

/// A run of this program.
struct ProgramRun {
  std::vector<std::string> words;                ///< without the program's name
  std::map<std::string, std::string> variables;  ///< set in its environment
  std::string error_path;                        ///< file for its standard error
};

/// Runs this program itself, once for each of `runs`, all at the same time and each as run_in_foreground
/// does. Discards their standard output. Returns their exit statuses. Throws EndedBySignal, after all have
/// ended, if this process received a signal meanwhile.
std::vector<int> run_this_program(std::vector<ProgramRun> runs);

}  // namespace offprof

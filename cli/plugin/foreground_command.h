#pragma once

#include <map>
#include <string>
#include <vector>

namespace offprof {

/// Destination of a command's standard output.
enum class CommandOutput { kInherited, kDiscarded };

/// Runs a command of the user in place of this program and waits for its end. `words` is the command and its
/// arguments; the command is looked up in PATH. It inherits the standard streams, except for an `output` that
/// is discarded, and the environment, in which `variables` are set. Signals that another process sends to
/// this process while the command runs (SIGINT, SIGQUIT, SIGTERM, SIGHUP) are sent on to the command; a
/// terminal sends them to both. The caller must have no other thread.
///
/// Returns the command's exit status, or 128 + the signal that ended it. Throws Error (input) if there is no
/// such command or it cannot be executed.
int run_in_foreground(const std::vector<std::string>& words,
                      const std::map<std::string, std::string>& variables,
                      CommandOutput output = CommandOutput::kInherited);

}  // namespace offprof

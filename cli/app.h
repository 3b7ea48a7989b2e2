#pragma once

#include <ostream>

#include "cli/terminal/terminal.h"

namespace offprof {

/// Runs the whole program inside the current process: parses the command line, runs the command, writes
/// results to `out` and everything else to `err`. Returns the exit status (see ExitStatus). Never throws.
int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
            const Terminal& terminal = {});

}  // namespace offprof

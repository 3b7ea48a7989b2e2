#pragma once

#include <string>
#include <vector>

#include "cli/reports/next_command.h"

namespace offprof {

/// Runs this executable once; `words` are those of a `run` that writes its results to a file. `what` is what
/// it records, for the error message; `variables` are set in its environment. Throws Error with the reason if
/// the run fails: environment if the run ended with that status, otherwise input. `hint`: of the error.
/// Throws EndedBySignal if it was interrupted.
void run_recording(const std::vector<std::string>& words, const Variables& variables, const std::string& what,
                   const std::string& hint);

}  // namespace offprof

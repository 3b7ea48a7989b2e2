#pragma once

#include <map>
#include <string>

#include "cli/plugin/foreground_command.h"
#include "profiler/plugin/script_io.h"

namespace offprof {

/// A recorded program: what EnginePlugin::run returns for a model, and what concerns programs alone.
struct ScriptRun {
  Trace trace;  ///< without its timeline
  ScriptOutcome outcome;
  /// Signal that ended the program or, before it was recorded, made it end; 0: none.
  int signal = 0;
  bool is_recorded =
      true;            ///< false: a signal ended the program earlier, or it waits; there is no trace then
  bool waits = false;  ///< the program is a rank that another one has to run before: see RankQueue::put_back
};

/// Completes `request.fingerprint` from the program, its arguments and its rank. Throws Error (input) if
/// there is no such script.
void identify_program(ScriptRequest& request);

/// Runs the program of `request` in `python` and records it: see ScriptRequest. The trace is written to
/// `request.trace_path`; empty: to no file. `output`: destination of the program's standard output.
/// `variables` are set in its environment. Throws Error if the program cannot be recorded, and writes nothing
/// then. See run_in_foreground for signals.
ScriptRun record_script(ScriptRequest request, const std::string& python,
                        CommandOutput output = CommandOutput::kInherited,
                        const std::map<std::string, std::string>& variables = {});

}  // namespace offprof

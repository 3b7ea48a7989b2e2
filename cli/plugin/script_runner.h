#pragma once

#include <string>

#include "cli/plugin/foreground_command.h"
#include "profiler/plugin/script_io.h"

namespace offprof {

/// A recorded program: what EnginePlugin::run returns for a model, and what concerns programs alone.
struct ScriptRun {
  Trace trace;  ///< without its timeline
  ScriptOutcome outcome;
};

/// Completes `request.fingerprint` from the program. Throws Error (input) if there is no such script.
void identify_program(ScriptRequest& request);

/// Runs the program of `request` in `python` and records it: see ScriptRequest. The trace is written to
/// `request.trace_path`; empty: to no file. `is_verbose`: the launcher prints its activities to standard
/// error. `output`: destination of the program's standard output. Throws Error if the program cannot be
/// recorded, and writes nothing then.
ScriptRun record_script(ScriptRequest request, const std::string& python, bool is_verbose,
                        CommandOutput output = CommandOutput::kInherited);

}  // namespace offprof

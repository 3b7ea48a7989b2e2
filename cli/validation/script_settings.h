#pragma once

#include <string>
#include <vector>

#include "cli/base/context.h"
#include "cli/plugin/foreground_command.h"
#include "profiler/plugin/plugin.h"
#include "profiler/plugin/script_io.h"
#include "traces/model/trace.h"

namespace offprof {

/// Runs the script of `request` once for each policy, each time from its beginning, in a process of its own,
/// and returns the measurements. The policy and the paths in `request` are ignored. The command log of a run
/// is compared with that of a replay of `trace`; a difference counts as one more step with other commands.
/// The script's standard output is discarded, its standard error passes through. Throws the errors of
/// record_script, with the policy in the message, and EndedBySignal.
ComparisonResult run_script_settings(Context& context, const ScriptRequest& request,
                                     const std::string& python, const std::vector<ComparedPolicy>& policies,
                                     const Trace& trace);

}  // namespace offprof

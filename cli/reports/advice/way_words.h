#pragma once

#include <string>
#include <vector>

#include "simulator/advisor/advice.h"
#include "traces/format/policy_io.h"
#include "traces/model/trace.h"

namespace offprof {

/// Returns the settings with the configuration in place of their own checkpointed modules, slices and
/// parameter offload.
RunSettings with_configuration(RunSettings settings, const Configuration& configuration);

/// Returns the configuration of the model that a trace was recorded in.
Configuration configuration_of(const Trace& trace);

/// Returns the flags of `run` that select the configuration, quoted for a shell; empty if there are none.
std::string flags_of(const Configuration& configuration);

/// Returns a phrase for the configuration: its flags, and `expandable segments`; `default` if it has neither.
std::string name_of(const Configuration& configuration);

/// Returns the words of `offprof run` that run the way; `policy_file` is the path of its policy. `program`
/// has the words of a `run` of the program: `run`, `model.pt`, `--device`, ...
std::vector<std::string> words_of_way(std::vector<std::string> program, const Way& way,
                                      const std::string& policy_file);

/// Returns the policy file of the way.
PolicyFile policy_file_of(const Way& way);

}  // namespace offprof

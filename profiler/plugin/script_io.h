#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/plugin/plugin.h"
#include "traces/base/error.h"
#include "traces/model/metrics.h"
#include "traces/model/trace.h"

namespace offprof {

inline constexpr std::string_view kScriptRequestSchema = "offprof.script_request/1";
inline constexpr std::string_view kScriptOutcomeSchema = "offprof.script_outcome/1";

/// Progress that the launcher prints to standard error.
enum class ShownProgress : std::uint8_t {
  kNothing,
  kStages,  ///< a line when something else is done, with the number of steps that are left
  kSteps,   ///< such a line for each step
};

/// A virtual GPU for a program: the launcher opens it before torch is imported.
struct ScriptGpu {
  std::string profile;            ///< name of a profile, or path of a profile file
  std::string libraries;          ///< folder of the stand-in libraries
  bool balanced_experts = false;  ///< see VirtualGpuOptions::assumes_balanced_experts
  std::string cluster{};          ///< name or path of a cluster profile; empty: the usual one of the card
};

/// Place of a program that is one rank of many, and runs without the others.
struct ScriptRank {
  int rank = 0;
  int world_size = 1;
  std::string said;  ///< folder for objects that ranks tell each other: see python/offprof/lone_rank.py
  std::string collectives_path{};  ///< the launcher writes the collectives of a measured step there
};

/// A request to record a Python program. `offprof run` writes it as JSON for the launcher in
/// `python/offprof`, which reads the members that the launcher needs and gives the rest to its extension.
struct ScriptRequest {
  RunRequest run;                      ///< `model_path`: the script, or the name of the module
  bool is_module = false;              ///< as with `python -m`
  std::vector<std::string> arguments;  ///< of the program, without its name
  std::string fingerprint;             ///< of the program and its arguments
  std::optional<ScriptGpu> virtual_gpu{};
  std::optional<ScriptRank> rank{};  ///< nullopt: the program is no rank of many
  std::string applied_code;          ///< file with Python code of `offprof export`; empty: none
  std::string step_function;         ///< `module:name` of a function whose calls are steps; empty: none
  bool has_default_steps = false;    ///< as many measured steps as the budget of a script has
  ShownProgress progress = ShownProgress::kNothing;
  std::vector<Policy> compared;         ///< measured after the policy of `run`
  bool continues = false;               ///< the program trains on under the policy after the recording
  int patience_steps = 100;             ///< most steps until enough of them are alike
  double patience_seconds = 600;        ///< longest time until the first step
  std::string shape = "most-frequent";  ///< see ShapeChoice
  std::string tool_version;             ///< for the trace, like `argv` and `kernel_times`
  std::vector<std::string> argv;
  std::optional<std::string> kernel_times{};
  std::string trace_path;     ///< the launcher writes the trace there
  std::string commands_path;  ///< and the command log there, if it is not empty
  std::string outcome_path;   ///< and the outcome there
};

/// Returns the name of the program in traces: that of the script without its folder, or of the module; and
/// the rank.
std::string program_name(const ScriptRequest& request);

/// Returns the path of the trace of a program that was refused device memory. It serves the error message
/// alone.
std::string refused_trace_path(const ScriptRequest& request);

/// A group of steps that have the same step program.
struct StepGroup {
  std::int64_t steps = 0;
  std::int64_t saved_tensors = 0;
  Bytes peak_bytes = 0;  ///< with nothing offloaded
  bool is_recorded = false;
};

/// A measurement of a further policy.
struct ComparedMeasurement {
  Policy policy;
  Metrics measured;
};

/// Outcome of a recording, beside the trace.
struct ScriptOutcome {
  std::optional<Error> error{};            ///< nothing was recorded, and no trace is written
  std::optional<MemoryRefusal> refusal{};  ///< see RunResult
  bool has_replayed_commands = true;     ///< the first measured step issued the commands that a replay issues
  int steps_with_other_commands = 0;     ///< see RunResult
  std::int64_t saved_by_user_hooks = 0;  ///< tensors that the program's own saved-tensor hooks took
  std::vector<StepGroup> groups{};       ///< observed steps, the most frequent group first
  std::int64_t skipped_steps = 0;        ///< steps after the observed ones that were unlike those to record
  std::vector<ComparedMeasurement> compared{};
};

/// Codecs of both. Readers throw Error (input) for members that are missing, of another type, or out of
/// range; `name` is the name of the text in errors.
std::string format_script_request(const ScriptRequest& request);
ScriptRequest parse_script_request(const std::string& text, const std::string& name);
std::string format_script_outcome(const ScriptOutcome& outcome);
ScriptOutcome parse_script_outcome(const std::string& text, const std::string& name);

}  // namespace offprof

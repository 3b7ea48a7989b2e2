#include "cli/plugin/script_runner.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/plugin/python_package.h"
#include "cli/plugin/rank_queue.h"
#include "cli/plugin/scratch_folder.h"
#include "traces/analysis/fingerprint.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

constexpr std::size_t kMostOutcomeBytes = std::size_t{64} << 20U;
/// Statuses above this are 128 + the signal that ended the process.
constexpr int kSignalBase = 128;

Error no_outcome(const std::string& python, const ScriptRequest& request, int status) {
  if (status > kSignalBase) {
    std::string hint;
    if (status == kSignalBase + SIGKILL) hint = "The machine may have run out of memory: use a smaller batch";
    if (!hint.empty() && !request.virtual_gpu) hint += ", or --device virtual";
    return environment_error(
        fmt::format("{} was ended by a signal: {}", request.run.model_path, strsignal(status - kSignalBase)),
        hint);
  }
  return environment_error(
      fmt::format("{} ended with status {} before anything was recorded", python, status),
      fmt::format("Its messages are above. Check that this Python runs: {} -c 'import torch'", python));
}

/// Returns the signal that ended the program. A program that handles it may end by itself, before everything
/// is recorded. 0: none.
int interruption(const ForegroundEnd& end, bool is_recorded) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    if (end.status == kSignalBase + signal) return signal;
  return is_recorded ? 0 : end.signal;
}

/// Throws Error (input) unless there is a file of that name.
void require_script(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return;
  const bool is_folder = std::filesystem::is_directory(path, error);
  throw input_error(is_folder ? path + " is a folder, not a script" : "there is no script " + path,
                    "Give its path from the current folder; name a module of a package with -m NAME");
}

}  // namespace

void identify_program(ScriptRequest& request) {
  if (!request.is_module) require_script(request.run.model_path);
  std::string identity =
      request.is_module ? request.run.model_path : fingerprint_of_file(request.run.model_path);
  for (const std::string& argument : request.arguments) identity += '\0' + argument;
  if (!request.applied_code.empty()) identity += " with " + fingerprint_of_file(request.applied_code);
  if (request.rank) identity += fmt::format(" rank {} of {}", request.rank->rank, request.rank->world_size);
  request.fingerprint = fingerprint(identity);
}

ScriptRun record_script(ScriptRequest request, const std::string& python, CommandOutput output,
                        const std::map<std::string, std::string>& variables) {
  const std::string launcher = python_package_folder() + "/launcher.py";
  const ScratchFolder folder;
  if (request.trace_path.empty()) request.trace_path = folder.file("trace.json");
  request.trace_path = std::filesystem::absolute(request.trace_path).string();
  if (!request.commands_path.empty())
    request.commands_path = std::filesystem::absolute(request.commands_path).string();
  request.outcome_path = folder.file("outcome.json");
  const std::string request_path = folder.file("request.json");
  write_file(request_path, format_script_request(request));
  const ForegroundEnd end = run_in_foreground({python, launcher, request_path}, variables, output);
  ScriptRun run;
  run.waits = request.rank.has_value() && end.status == kRankWaits;
  run.is_recorded = std::filesystem::exists(request.outcome_path);
  if (run.is_recorded)
    run.outcome =
        parse_script_outcome(read_file(request.outcome_path, kMostOutcomeBytes), request.outcome_path);
  if (run.outcome.error) run.is_recorded = false;
  run.signal = interruption(end, run.is_recorded);
  if (!run.is_recorded && (run.signal != 0 || run.waits)) return run;
  if (run.outcome.error) throw Error(*run.outcome.error);
  if (!run.is_recorded) throw no_outcome(python, request, end.status);
  run.trace = read_trace(run.outcome.refusal ? refused_trace_path(request) : request.trace_path);
  return run;
}

}  // namespace offprof

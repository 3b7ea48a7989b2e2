#include "cli/gate/gate_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cli/advice/failure_reason.h"
#include "cli/base/exit_status.h"
#include "cli/plugin/foreground_command.h"
#include "cli/plugin/scratch_folder.h"
#include "cli/reports/next_command.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {

StepSummary figures_of_job(const GateJob& job) {
  if (!job.trace.empty()) return read_figures(job.trace);
  const ScratchFolder folder;
  const std::string trace = folder.file("trace.json"), errors = folder.file("errors.txt");
  std::vector<std::string> words = job.run_words;
  words.insert(std::ranges::find(words, "--"), {"-q", "-o", trace});
  std::error_code error;
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe", error).string()};
  command.insert(command.end(), words.begin(), words.end());
  const ForegroundEnd end = run_in_foreground(command, {}, CommandOutput::kDiscarded, errors);
  if (end.signal != 0) throw EndedBySignal{end.signal};
  if (end.status != 0) {
    const bool is_environment = end.status == static_cast<int>(ExitStatus::kEnvironment);
    throw Error(
        is_environment ? ErrorKind::kEnvironment : ErrorKind::kInput,
        fmt::format("{} could not be recorded: {}", job.key, failure_reason(read_file(errors), end.status)),
        "Run it alone: " + command_line(job.run_words));
  }
  StepSummary figures = read_figures(trace);
  figures.source = job.key;
  return figures;
}

}  // namespace offprof

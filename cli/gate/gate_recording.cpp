#include "cli/gate/gate_recording.h"

#include <fmt/format.h>

#include <algorithm>
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
  if (const int status = run_this_program({{words, {}, errors}}).front(); status != 0) {
    const bool is_environment = status == static_cast<int>(ExitStatus::kEnvironment);
    throw Error(
        is_environment ? ErrorKind::kEnvironment : ErrorKind::kInput,
        fmt::format("{} could not be recorded: {}", job.key, failure_reason(read_file(errors), status)),
        "Run it alone: " + command_line(job.run_words));
  }
  StepSummary figures = read_figures(trace);
  figures.source = job.key;
  return figures;
}

}  // namespace offprof

#include "cli/gate/gate_recording.h"

#include "cli/advice/recorded_run.h"
#include "cli/plugin/scratch_folder.h"
#include "cli/reports/next_command.h"

namespace offprof {

StepSummary figures_of_job(const GateJob& job) {
  if (!job.trace.empty()) return read_figures(job.trace);
  const ScratchFolder folder;
  const std::string trace = folder.file("trace.json");
  run_recording(with_options(job.run_words, {"-q", "-o", trace}), {}, job.key,
                "Run it alone: " + command_line(job.run_words));
  StepSummary figures = read_figures(trace);
  figures.source = job.key;
  return figures;
}

}  // namespace offprof

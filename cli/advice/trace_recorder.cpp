#include "cli/advice/trace_recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/advice/way_words.h"
#include "cli/reports/lost_records.h"
#include "cli/reports/tuned_configuration.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

void require_link(const Trace& trace, const std::string& path) {
  if (trace.environment.link.d2h.bytes_per_second > 0 && trace.environment.link.h2d.bytes_per_second > 0)
    return;
  throw input_error(path + " has no measured link: the cost of copies is unknown",
                    "Record it on a device with a link: --device virtual:h100-80gb");
}

}  // namespace

TraceRecorder::TraceRecorder(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    auto trace = std::make_shared<const Trace>(read_trace(path));
    if (!steps_.empty()) refuse_other_step(*steps_.front().trace, paths.front(), *trace, path);
    refuse_lost_records(*trace, path, false);
    require_link(*trace, path);
    const Configuration configuration = configuration_of(*trace);
    if (std::ranges::find(steps_, configuration, &RecordedStep::configuration) != steps_.end())
      throw input_error(fmt::format("{}: an earlier trace has the same configuration", path),
                        "Give one trace of each configuration (--checkpoint, --slices, --offload-params).");
    steps_.push_back({configuration, std::move(trace), {}, name_of(configuration)});
  }
}

std::vector<RecordedStep> TraceRecorder::record(const std::vector<Configuration>& configurations) {
  std::vector<RecordedStep> refused;
  for (const Configuration& configuration : configurations)
    refused.push_back({configuration, nullptr, "traces are compared without recording", {}});
  return refused;
}

const Trace& TraceRecorder::trace_of(const Configuration& configuration) const {
  return *std::ranges::find(steps_, configuration, &RecordedStep::configuration)->trace;
}

}  // namespace offprof

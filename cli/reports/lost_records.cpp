#include "cli/reports/lost_records.h"

#include <fmt/format.h>

#include "traces/base/error.h"

namespace offprof {

void add_force_option(CLI::App& app, bool& force) {
  app.add_flag("--force", force,
               "Use the trace even if its tracer lost GPU activity: its times may be too short");
}

std::vector<std::string> refuse_lost_records(const Trace& trace, const std::string& path, bool force) {
  if (!trace.tracing || !trace.tracing->lost_records()) return {};
  const Tracing& tracing = *trace.tracing;
  const std::string what = fmt::format("{}: {} {} lost GPU activity ({}), so its times may be too short",
                                       path, tracing.tool, tracing.version, losses_text(tracing));
  if (force) return {what + ", and so may the times predicted from them"};
  throw input_error(
      what, fmt::format("Record it again with fewer --steps or a smaller model: the GPU activity must fit "
                        "into {} of buffers. "
                        "Memory and copied bytes are exact in any case; --force uses the times as they are.",
                        format_bytes(tracing.host_bytes)));
}

}  // namespace offprof

#include "cli/reports/lost_records.h"

#include <fmt/format.h>

#include "traces/base/error.h"

namespace offprof {

void add_force_option(CLI::App& app, bool& force) {
  app.add_flag("--force", force,
               "Use a trace whose tracer lost some of what the GPU did: its times may be too short");
}

std::vector<std::string> refuse_lost_records(const Trace& trace, const std::string& path, bool force) {
  if (!trace.tracing || !trace.tracing->lost_records()) return {};
  const Tracing& tracing = *trace.tracing;
  const std::string what =
      fmt::format("{}: {} {} lost some of what the GPU did ({}), so its times may be too short", path,
                  tracing.tool, tracing.version, losses_text(tracing));
  if (force) return {what + ", and so may be what is predicted from them"};
  throw input_error(
      what,
      fmt::format(
          "Record it again, with fewer --steps or a smaller model: what happens has to fit into {} of "
          "buffers. Memory and copied bytes are exact all the same; --force takes the times as they are.",
          format_bytes(tracing.host_bytes)));
}

}  // namespace offprof

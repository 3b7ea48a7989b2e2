#include "cli/reports/view_report.h"
#include "simulator/steps/time_doubt.h"
#include "simulator/steps/views.h"
#include "tests/fuzz/fuzz.h"
#include "traces/format/trace_io.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

/// Calls the functions of `simulate`.
void simulate(Trace& trace, const TraceSteps& steps, const Policy& policy) {
  const Link& link = trace.environment.link;
  const Metrics metrics = steps.predict(policy, link);
  OFFPROF_CHECK(*metrics.step_time_ns >= 0 && *metrics.device_peak_bytes >= 0);
  doubt_times(trace, steps, policy, link);
  replay_ledger(steps.program(policy), steps.step(policy), policy);
  replay_commands(steps.step(policy), policy);
  trace.timeline = replay_timeline(steps.program(policy), steps.step(policy), policy, link);
  const std::string written = format_trace(trace);
  parse_document(written, "written.json");
}

}  // namespace
}  // namespace offprof

/// Fuzzes traces. Each goes through `view`, and through `simulate` under its own policy and the presets.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    Trace trace = parse_trace(std::string(as_text(data, size)), "t.json");
    trace.settings.steps = std::min(trace.settings.steps, 4);  // more steps would only take longer
    const ViewReport report = make_view_report(trace, "t.json", 10);
    check_shown(to_text(report, {}));
    check_shown(dump_json(to_json(report)));
    const TraceSteps steps(trace);
    for (const Policy& policy : {trace.policy, preset_policy("offload"), preset_policy("trl")})
      simulate(trace, steps, policy);
  });
}

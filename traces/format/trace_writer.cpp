#include <fmt/format.h>

#include "traces/format/gradient_error_io.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"
#include "traces/format/program_io.h"
#include "traces/format/recomputations_io.h"
#include "traces/format/run_info_io.h"
#include "traces/format/trace_io.h"
#include "traces/format/tracing_io.h"
#include "traces/format/transforms_io.h"
#include "traces/io/file.h"
#include "traces/io/json_access.h"
#include "traces/timeline/trace_events.h"

namespace offprof {
namespace {

using Json = nlohmann::ordered_json;

/// Appends a top-level member on its own line.
void append_member(std::string& out, std::string_view key, const Json& value) {
  out += fmt::format("\"{}\": {},\n", key, dump_json(value, -1));
}

/// Appends the members that Chrome trace viewers and Holistic Trace Analysis need. The latter searches each
/// line for `"rank": `, including the space.
void append_chrome_members(std::string& out, const Trace& trace) {
  const std::string name = trace.model.name + (trace.simulated ? " (simulated)" : "");
  out +=
      "\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": 0,\n"
      "\"distributedInfo\": {\"backend\": \"none\", \"rank\": 0, \"world_size\": 1},\n";
  append_member(out, "traceName", Json(name));
}

void append_run_members(std::string& out, const Trace& trace) {
  append_member(out, "tool",
                Json{{"name", "offprof"}, {"version", trace.tool_version}, {"argv", trace.argv}});
  append_member(out, "simulated", Json(trace.simulated));
  append_member(out, "environment", to_json(trace.environment, RunDetail::kFull));
  append_member(out, "model", to_json(trace.model, RunDetail::kFull));
  append_member(out, "settings", to_json(trace.settings, RunDetail::kFull));
  if (trace.step_size != StepSize{}) append_member(out, "step_size", to_json(trace.step_size));
  if (trace.steps_differ) append_member(out, "steps_differ", Json(true));
  append_member(out, "policy", to_json(trace.policy));
  append_member(out, trace.simulated ? "predicted" : "measured", metrics_to_json(trace.metrics));
  append_member(out, "ledger", ledger_to_json(trace.ledger));
  append_member(out, "gradients", Json(trace.gradients));
  if (!trace.gradient_errors.empty())
    append_member(out, "gradient_errors", gradient_errors_to_json(trace.gradient_errors));
  if (!trace.notes.empty()) append_member(out, "notes", Json(trace.notes));
  if (trace.tracing) append_member(out, "tracing", to_json(*trace.tracing));
  if (!trace.transforms.empty()) append_member(out, "transforms", transforms_to_json(trace.transforms));
}

void append_program_member(std::string& out, const char* key, const StepProgram& program) {
  out += fmt::format("\"{}\": ", key);
  append_program(out, program);
  out += ",\n";
}

}  // namespace

std::string format_trace(const Trace& trace) {
  std::string out = "{\n";
  append_member(out, "schema", Json(kTraceSchema));
  append_chrome_members(out, trace);
  append_run_members(out, trace);
  append_program_member(out, "program", trace.program);
  if (trace.program.recomputations)
    append_member(out, "recomputations", recomputations_to_json(*trace.program.recomputations));
  if (trace.dense_program) append_program_member(out, "dense_program", *trace.dense_program);
  out += "\"traceEvents\": [";
  append_trace_events(out, trace);
  out += "\n]}\n";
  return out;
}

void write_trace(const std::string& path, const Trace& trace) {
  write_file(path, format_trace(trace));
}

}  // namespace offprof

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

namespace offprof {
namespace {

void read_results(Trace& trace, const JsonValue& root) {
  const JsonValue policy = root.at("policy");
  trace.policy = policy_from_json(policy.json(), policy.where());
  const JsonValue metrics = root.at(trace.simulated ? "predicted" : "measured");
  trace.metrics = metrics_from_json(metrics.json(), metrics.where());
  const JsonValue ledger = root.at("ledger");
  trace.ledger = ledger_from_json(ledger.json(), ledger.where());
  trace.gradients = root.at("gradients").as_string();
  if (const auto errors = root.find("gradient_errors"))
    trace.gradient_errors = gradient_errors_from_json(*errors);
  if (const auto notes = root.find("notes")) trace.notes = notes->as_strings();
  if (const auto tracing = root.find("tracing")) trace.tracing = tracing_from_json(*tracing);
  if (const auto transforms = root.find("transforms")) trace.transforms = transforms_from_json(*transforms);
}

Trace trace_from_json(const JsonValue& root) {
  Trace trace;
  const JsonValue tool = root.at("tool");
  trace.tool_version = tool.at("version").as_string();
  trace.argv = tool.at("argv").as_strings();
  trace.simulated = root.at("simulated").as_bool();
  trace.environment = environment_from_json(root.at("environment"), RunDetail::kFull);
  trace.model = model_from_json(root.at("model"), RunDetail::kFull);
  trace.settings = settings_from_json(root.at("settings"), RunDetail::kFull);
  if (const auto size = root.find("step_size")) trace.step_size = step_size_from_json(*size);
  if (const auto differ = root.find("steps_differ")) trace.steps_differ = differ->as_bool();
  read_results(trace, root);
  trace.program = program_from_json(root.at("program"));
  if (const auto recomputations = root.find("recomputations"))
    trace.program.recomputations = recomputations_from_json(*recomputations, trace.program);
  if (const auto dense = root.find("dense_program")) trace.dense_program = program_from_json(*dense);
  return trace;
}

}  // namespace

Trace trace_from_document(JsonDocument& document, const std::string& name) {
  check_schema(document.root, kTraceSchema, name);
  return trace_from_json(JsonValue(document, name + ": "));
}

Trace parse_trace(const std::string& text, const std::string& name) {
  TextSource source(text);
  JsonDocument document = parse_trace_document(source, name);
  return trace_from_document(document, name);
}

Trace read_trace(const std::string& path) {
  JsonDocument document = parse_trace_document(*open_file(path), path);
  return trace_from_document(document, path);
}

}  // namespace offprof

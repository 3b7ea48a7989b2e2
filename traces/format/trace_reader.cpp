#include <fmt/format.h>

#include "traces/format/allocator_state_io.h"
#include "traces/format/calibration_io.h"
#include "traces/format/gradient_error_io.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"
#include "traces/format/program_io.h"
#include "traces/format/recomputations_io.h"
#include "traces/format/trace_io.h"
#include "traces/format/tracing_io.h"
#include "traces/format/transforms_io.h"
#include "traces/io/file.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

/// Reads a count between 1 and `most`, the range that `run` accepts.
int read_count(const JsonValue& json, std::int64_t most) {
  return static_cast<int>(json.as_integer(1, most));
}

Nanoseconds read_time(const JsonValue& json) {
  return json.as_integer(0, kLongestMeasured);
}

/// Reads a rate; 0: not known.
double read_rate(const JsonValue& json) {
  constexpr double kLeast = 1, kMost = 1e18;
  const double rate = json.as_amount();
  if (rate != 0 && (rate < kLeast || rate > kMost))
    json.fail(fmt::format("{} is not 0, nor between {} and {}", rate, kLeast, kMost));
  return rate;
}

LinkDirection read_direction(const JsonValue& json) {
  LinkDirection direction = {read_rate(json.at("bytes_per_second")), read_time(json.at("latency_ns"))};
  if (const auto start = json.find("start_ns")) direction.start_ns = read_time(*start);
  return direction;
}

Environment read_environment(const JsonValue& json) {
  Environment environment;
  environment.device = json.at("device").as_string();
  environment.device_name = json.at("device_name").as_string();
  environment.torch_version = json.at("torch_version").as_string();
  environment.threads = read_count(json.at("threads"), kMostThreads);
  const JsonValue link = json.at("link");
  if (const auto memory = json.find("device_memory_bytes"))
    environment.device_memory_bytes = memory->as_integer();
  if (const auto modelled = json.find("times_are_modelled"))
    environment.times_are_modelled = modelled->as_bool();
  if (const auto file = json.find("kernel_times")) environment.kernel_times = file->as_string();
  if (const auto memory = json.find("beside_allocator"))
    environment.beside_allocator = memory_beside_allocator_from_json(*memory);
  environment.link = {read_direction(link.at("d2h")), read_direction(link.at("h2d"))};
  if (const auto calibration = json.find("calibration"))
    environment.calibration = calibration_from_json(*calibration);
  if (const auto shared = link.find("shared")) environment.link.is_shared = shared->as_bool();
  if (const auto disk = link.find("disk")) {
    environment.link.disk = {read_direction(disk->at("write")), read_direction(disk->at("read"))};
    if (const auto compressed = disk->find("compressed"))
      environment.link.disk.is_compressed = compressed->as_bool();
  }
  if (const auto launch = link.find("launch_ns")) environment.link.launch_ns = read_time(*launch);
  return environment;
}

ModelInfo read_model(const JsonValue& json) {
  return {json.at("name").as_string(), json.at("fingerprint").as_string(), json.at("parameters").as_integer(),
          json.at("parameter_bytes").as_integer()};
}

RunSettings read_settings(const JsonValue& json) {
  RunSettings settings;
  settings.inputs = json.at("inputs").as_strings();
  settings.loss = json.at("loss").as_string();
  settings.optimizer = json.at("optimizer").as_string();
  settings.steps = read_count(json.at("steps"), kMostSteps);
  settings.warmup = read_count(json.at("warmup"), kMostSteps);
  settings.seed = json.at("seed").as_unsigned();
  if (const auto memory = json.find("device_memory_bytes"))
    settings.device_memory_bytes = memory->as_integer();
  if (const auto cap = json.find("link_cap"))
    settings.link_cap = {read_direction(cap->at("d2h")), read_direction(cap->at("h2d"))};
  if (const auto parameters = json.find("parameters"))
    settings.parameters = parameter_settings_from_json(*parameters);
  if (const auto checkpointed = json.find("checkpoint")) settings.checkpointed = checkpointed->as_strings();
  if (const auto slices = json.find("slices")) settings.slices = slice_settings_from_json(*slices);
  return settings;
}

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
  trace.environment = read_environment(root.at("environment"));
  trace.model = read_model(root.at("model"));
  trace.settings = read_settings(root.at("settings"));
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

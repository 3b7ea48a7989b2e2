#include "traces/format/tracing_io.h"

#include "traces/format/calibration_io.h"

namespace offprof {
namespace {

/// Upper limit for numbers of records and for bytes that a step copies.
constexpr std::int64_t kMostCounted = std::int64_t{1} << 50;

Nanoseconds read_ns(const JsonValue& json) {
  return json.as_integer(0, kLongestMeasured);
}

std::int64_t read_amount(const JsonValue& json) {
  return json.as_integer(0, kMostCounted);
}

nlohmann::ordered_json link_to_json(const LinkFigures& link) {
  return {{"busy_ns", link.busy_ns},
          {"bytes", link.bytes},
          {"copies_ns", link.copies_ns},
          {"large_bytes", link.large_bytes},
          {"large_copies_ns", link.large_copies_ns}};
}

LinkFigures link_from_json(const JsonValue& json) {
  return {read_ns(json.at("busy_ns")), read_amount(json.at("bytes")), read_ns(json.at("copies_ns")),
          read_amount(json.at("large_bytes")), read_ns(json.at("large_copies_ns"))};
}

nlohmann::ordered_json step_to_json(const GpuFigures& step) {
  return {{"compute_ns", step.compute_ns},
          {"exposed_ns", step.exposed_ns},
          {"idle_ns", step.idle_ns},
          {"d2h", link_to_json(step.d2h)},
          {"h2d", link_to_json(step.h2d)}};
}

GpuFigures step_from_json(const JsonValue& json) {
  return {read_ns(json.at("compute_ns")), read_ns(json.at("exposed_ns")), read_ns(json.at("idle_ns")),
          link_from_json(json.at("d2h")), link_from_json(json.at("h2d"))};
}

}  // namespace

nlohmann::ordered_json to_json(const Tracing& tracing) {
  nlohmann::ordered_json json = {{"tool", tracing.tool},
                                 {"version", tracing.version},
                                 {"dropped_records", tracing.dropped_records},
                                 {"untimed_records", tracing.untimed_records},
                                 {"unreadable_buffers", tracing.unreadable_buffers},
                                 {"host_bytes", tracing.host_bytes}};
  if (tracing.device_bytes) json["device_bytes"] = *tracing.device_bytes;
  if (const auto& cost = tracing.cost)
    json["cost"] = {{"untraced", to_json(cost->untraced)},
                    {"streams", to_json(cost->streams)},
                    {"tracer", to_json(cost->tracer)},
                    {"recorder", to_json(cost->recorder)},
                    {"everything", to_json(cost->everything)}};
  auto steps = nlohmann::ordered_json::array();
  for (const GpuFigures& step : tracing.steps) steps.push_back(step_to_json(step));
  json["steps"] = std::move(steps);
  return json;
}

Tracing tracing_from_json(const JsonValue& json) {
  Tracing tracing;
  tracing.tool = json.at("tool").as_string();
  tracing.version = json.at("version").as_string();
  tracing.dropped_records = read_amount(json.at("dropped_records"));
  tracing.untimed_records = read_amount(json.at("untimed_records"));
  tracing.unreadable_buffers = read_amount(json.at("unreadable_buffers"));
  tracing.host_bytes = read_amount(json.at("host_bytes"));
  if (const auto bytes = json.find("device_bytes")) tracing.device_bytes = read_amount(*bytes);
  if (const auto cost = json.find("cost"))
    tracing.cost = {measured_from_json(cost->at("untraced")), measured_from_json(cost->at("streams")),
                    measured_from_json(cost->at("tracer")), measured_from_json(cost->at("recorder")),
                    measured_from_json(cost->at("everything"))};
  const JsonValue steps = json.at("steps");
  for (std::size_t i = 0; i < steps.size(); ++i) tracing.steps.push_back(step_from_json(steps.element(i)));
  return tracing;
}

}  // namespace offprof

#include "traces/analysis/figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "traces/base/error.h"
#include "traces/format/allocator_state_io.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"
#include "traces/format/run_info_io.h"
#include "traces/format/trace_io.h"
#include "traces/format/tracing_io.h"
#include "traces/io/file.h"
#include "traces/io/json_access.h"
#include "traces/io/json_document.h"

namespace offprof {
namespace {

/// Reads the model's description; a report of `tune` has its name alone.
ModelInfo model_of_report(const JsonValue& json) {
  if (!json.json().is_string()) return model_from_json(json, RunDetail::kIdentity);
  ModelInfo model;
  model.name = json.as_string();
  return model;
}

SavedByOp saved_by_op_from_json(const JsonValue& json) {
  SavedByOp saved;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonValue row = json.element(i);
    saved[row.at("op").as_string()] = {row.at("tensors").as_integer(), row.at("bytes").as_integer()};
  }
  return saved;
}

void read_description(const JsonValue& document, StepSummary& figures) {
  if (const auto json = document.find("simulated")) figures.simulated = json->as_bool();
  if (const auto json = document.find("model")) figures.model = model_of_report(*json);
  if (const auto json = document.find("environment"))
    figures.environment = environment_from_json(*json, RunDetail::kIdentity);
  figures.times_are_modelled = figures.environment && figures.environment->times_are_modelled;
  if (const auto json = document.find("times_are_modelled")) figures.times_are_modelled = json->as_bool();
  if (const auto json = document.find("settings"))
    figures.settings = settings_from_json(*json, RunDetail::kIdentity);
  if (const auto json = document.find("policy"))
    figures.policy = policy_from_json(json->json(), json->where());
  if (const auto json = document.find("allocator_settings")) figures.allocator_settings = json->as_string();
  if (const auto json = document.find("tracing")) figures.tracing = tracing_from_json(*json);
  if (const auto json = document.find("saved_by_op")) figures.saved_by_op = saved_by_op_from_json(*json);
  if (const auto json = document.find("saved_by_site"))
    figures.saved_by_site = saved_by_site_from_json(*json);
  if (const auto json = document.find("in_use_at_peak"))
    figures.in_use_at_peak = saved_by_site_from_json(*json);
}

/// Reads the figures and the policy of a report, or, for a report of `tune`, those of the chosen policy.
void read_report_figures(const JsonValue& report, StepSummary& figures) {
  if (const auto chosen = report.find("chosen")) return read_report_figures(*chosen, figures);
  const auto measured = report.find("measured");
  const auto predicted = report.find("predicted");
  if (!measured && !predicted) {
    report.fail("the report has no figures (neither `measured` nor `predicted`)",
                "Give a report of run, simulate, tune or view.");
  }
  const JsonValue& values = measured ? *measured : *predicted;
  figures.metrics = metrics_from_json(values.json(), values.where());
  figures.simulated = !measured;
  if (const auto json = report.find("policy")) figures.policy = policy_from_json(json->json(), json->where());
}

Metrics baseline_metrics(const JsonValue& json) {
  Metrics metrics = metrics_from_json(json.json(), json.where());
  check_metric_keys(json.json(), json.where());
  return metrics;
}

StepSummary figures_from_source(ByteSource& source, const std::string& name) {
  JsonDocument document = parse_trace_document(source, name);
  const std::string schema = schema_of(document.root);
  for (const std::string_view known : {kReportSchema, kBaselineSchema}) {
    if (schema_kind(schema) == schema_kind(known)) return figures_from_document(document.root, known, name);
  }
  return figures_of(trace_from_document(document, name), name);
}

std::string describe(const Link& link) {
  const auto direction = [](const LinkDirection& d) {
    return fmt::format("{} after {}", format_rate(d.bytes_per_second), format_duration(d.latency_ns));
  };
  const std::string both =
      link.slows_both() ? fmt::format(", {} both at once", format_rate(link.bidirectional_bytes_per_second))
                        : "";
  return fmt::format("{} out, {} in{}{}", direction(link.d2h), direction(link.h2d),
                     link.is_shared ? ", shared" : "", both);
}

/// Collects the differences between values that are known on both sides.
class DifferenceList {
 public:
  void add(const std::string& what, const std::string& base, const std::string& now) {
    if (base != now && !base.empty() && !now.empty()) differences_.push_back({what, base, now});
  }
  std::vector<RunDifference> take() { return std::move(differences_); }

 private:
  std::vector<RunDifference> differences_;
};

/// Compares fingerprints, because the same file under another name is the same model.
void compare(const ModelInfo& base, const ModelInfo& now, DifferenceList& list) {
  const bool both_have_fingerprints = !base.fingerprint.empty() && !now.fingerprint.empty();
  if (!both_have_fingerprints) return list.add("model", base.name, now.name);
  if (base.fingerprint == now.fingerprint) return;
  const auto name = [](const ModelInfo& model) {
    return fmt::format("{} ({})", model.name, model.fingerprint);
  };
  list.add("model", name(base), name(now));
}

void compare(const Environment& base, const Environment& now, DifferenceList& list) {
  list.add("device", base.device, now.device);
  list.add("machine", base.device_name, now.device_name);
  list.add("threads", std::to_string(base.threads), std::to_string(now.threads));
  list.add("LibTorch", base.torch_version, now.torch_version);
  if (base.times_are_modelled && now.times_are_modelled)
    list.add("kernel times", base.kernel_times.value_or("none"), now.kernel_times.value_or("none"));
  const bool both_links = base.link.d2h.bytes_per_second > 0 && now.link.d2h.bytes_per_second > 0;
  if (both_links) list.add("link", describe(base.link), describe(now.link));
}

std::string describe_checkpointed(const std::vector<std::string>& patterns) {
  return patterns.empty() ? "none" : fmt::format("{}", fmt::join(patterns, " "));
}

void compare(const RunSettings& base, const RunSettings& now, DifferenceList& list) {
  list.add("inputs", fmt::format("{}", fmt::join(base.inputs, " ")),
           fmt::format("{}", fmt::join(now.inputs, " ")));
  list.add("loss", base.loss, now.loss);
  list.add("optimizer", base.optimizer, now.optimizer);
  list.add("parameters", describe(base.parameters), describe(now.parameters));
  list.add("checkpoint", describe_checkpointed(base.checkpointed), describe_checkpointed(now.checkpointed));
  list.add("slices", describe(base.slices), describe(now.slices));
}

std::string source_of_figures(const StepSummary& figures) {
  if (!figures.times_are_modelled) return *figures.simulated ? "simulated" : "measured";
  return *figures.simulated ? "simulated on a virtual GPU" : "virtual GPU";
}

std::optional<std::string> allocator_settings_of(const StepProgram& program) {
  return program.allocator ? std::optional(program.allocator->settings) : std::nullopt;
}

/// Returns the settings, or `default` if none are set.
std::string describe_allocator_settings(const std::string& settings) {
  return settings.empty() ? "default" : settings;
}

}  // namespace

SavedByOp saved_by_op(const StepProgram& program) {
  SavedByOp saved;
  for (const SavedTensor& tensor : program.saved) {
    LedgerEntry& entry = saved[program.names.at(tensor.op)];
    ++entry.tensors;
    entry.bytes += tensor.bytes;
  }
  return saved;
}

StepSummary figures_of(const Trace& trace, const std::string& source) {
  return {.source = source,
          .metrics = trace.metrics,
          .simulated = trace.simulated,
          .model = trace.model,
          .environment = trace.environment,
          .settings = trace.settings,
          .policy = trace.policy,
          .allocator_settings = allocator_settings_of(trace.program),
          .saved_by_op = saved_by_op(trace.program),
          .saved_by_site = saved_by_site(trace.program),
          .in_use_at_peak = in_use_at_peak(trace.program),
          .tracing = trace.tracing,
          .times_are_modelled = trace.environment.times_are_modelled};
}

StepSummary figures_from_document(const nlohmann::json& document, std::string_view schema,
                                  const std::string& name) {
  check_schema(document, schema, name);
  StepSummary figures{.source = name};
  const JsonValue json(document, name);
  read_description(json, figures);
  if (schema == kReportSchema) {
    read_report_figures(json, figures);
  } else {
    json.allow_only({"schema", "tool_version", "metrics", "earlier", "simulated", "model", "environment",
                     "settings", "policy", "allocator_settings", "tracing", "saved_by_op", "saved_by_site",
                     "in_use_at_peak"});
    figures.metrics = baseline_metrics(json.at("metrics"));
    if (const auto earlier = json.find("earlier"))
      for (std::size_t i = 0; i < earlier->size(); ++i)
        figures.earlier.push_back(baseline_metrics(earlier->element(i)));
  }
  return figures;
}

StepSummary read_figures(const std::string& path) {
  return figures_from_source(*open_file(path), path);
}

StepSummary parse_figures(const std::string& text, const std::string& name) {
  TextSource source(text);
  return figures_from_source(source, name);
}

nlohmann::ordered_json run_description_to_json(const StepSummary& figures) {
  auto json = nlohmann::ordered_json::object();
  if (figures.simulated) json["simulated"] = *figures.simulated;
  if (figures.model) json["model"] = to_json(*figures.model, RunDetail::kIdentity);
  if (figures.environment) json["environment"] = to_json(*figures.environment, RunDetail::kIdentity);
  if (figures.settings) json["settings"] = to_json(*figures.settings, RunDetail::kIdentity);
  if (figures.policy) json["policy"] = to_json(*figures.policy);
  if (figures.allocator_settings) json["allocator_settings"] = *figures.allocator_settings;
  if (figures.tracing) json["tracing"] = to_json(*figures.tracing);
  return json;
}

nlohmann::ordered_json baseline_to_json(const StepSummary& figures, std::string_view tool_version) {
  nlohmann::ordered_json json = {{"schema", kBaselineSchema}, {"tool_version", tool_version}};
  json["metrics"] = metrics_to_json(figures.metrics);
  for (const Metrics& metrics : figures.earlier) json["earlier"].push_back(metrics_to_json(metrics));
  json.update(run_description_to_json(figures));
  auto saved = nlohmann::ordered_json::array();
  for (const auto& [op, entry] : figures.saved_by_op) {
    saved.push_back({{"op", op}, {"tensors", entry.tensors}, {"bytes", entry.bytes}});
  }
  json["saved_by_op"] = std::move(saved);
  if (!figures.saved_by_site.empty()) json["saved_by_site"] = to_json(figures.saved_by_site);
  if (!figures.in_use_at_peak.empty()) json["in_use_at_peak"] = to_json(figures.in_use_at_peak);
  return json;
}

std::vector<RunDifference> run_differences(const StepSummary& base, const StepSummary& now) {
  DifferenceList list;
  if (base.model && now.model) compare(*base.model, *now.model, list);
  if (base.settings && now.settings) compare(*base.settings, *now.settings, list);
  if (base.environment && now.environment) compare(*base.environment, *now.environment, list);
  if (base.allocator_settings && now.allocator_settings)
    list.add("allocator settings", describe_allocator_settings(*base.allocator_settings),
             describe_allocator_settings(*now.allocator_settings));
  if (base.policy && now.policy) list.add("policy", describe(*base.policy), describe(*now.policy));
  if (base.simulated && now.simulated)
    list.add("source of figures", source_of_figures(base), source_of_figures(now));
  return list.take();
}

const RunDifference* time_difference(const std::vector<RunDifference>& differences) {
  for (const char* what : {"machine", "threads", "kernel times", "source of figures"}) {
    const auto found = std::ranges::find(differences, what, &RunDifference::what);
    if (found != differences.end()) return &*found;
  }
  return nullptr;
}

}  // namespace offprof

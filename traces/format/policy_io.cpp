#include "traces/format/policy_io.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "traces/base/error.h"
#include "traces/format/metrics_io.h"
#include "traces/format/rules_io.h"
#include "traces/io/file.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

/// Returns the names of the schedulers, in the order of SchedulerKind.
constexpr std::array<std::string_view, kSchedulers.size()> scheduler_names() {
  std::array<std::string_view, kSchedulers.size()> names;
  std::ranges::transform(kSchedulers, names.begin(), &SchedulerTraits::name);
  return names;
}

/// Rejects a value that the policy's scheduler does not support, with the reason.
void refuse_unless_settable(const JsonValue& json, const Policy& policy, bool is_settable,
                            const char* lacks) {
  const SchedulerTraits& traits = traits_of(policy.scheduler);
  if (traits.has_few_settings && !is_settable) json.fail(fmt::format("{} {}", traits.rules, lacks));
}

bool knows_saved_tensors(const PlannedStep& a, const PlannedStep& b) {
  return !a.saved_fingerprint.empty() && !b.saved_fingerprint.empty();
}

/// Returns true unless the policy has a plan, and that is for another step or an unknown one.
bool is_for(const Policy& policy, const PlannedStep& made_for, const PlannedStep& step) {
  if (!policy.tensors) return true;
  return knows_saved_tensors(made_for, step) ? made_for.saved_fingerprint == step.saved_fingerprint
                                             : made_for.run_fingerprint == step.run_fingerprint;
}

/// Returns what differs between two steps, of which a plan is for one and not for the other.
std::string_view difference(const PlannedStep& made_for, const PlannedStep& step) {
  return knows_saved_tensors(made_for, step)
             ? "other saved tensors: its model, inputs, loss, checkpointed modules, slices, device or "
               "library versions differ"
             : "other model, inputs, loss, optimizer, checkpointed modules or slices";
}

nlohmann::ordered_json limit_to_json(const std::optional<std::int64_t>& limit) {
  return limit ? nlohmann::ordered_json(*limit) : nlohmann::ordered_json(nullptr);
}

std::optional<std::int64_t> limit_from_json(const JsonValue& object, std::string_view key) {
  const auto value = object.find(key);
  return value ? std::optional(value->as_integer()) : std::nullopt;
}

/// Reads a plan and sorts it. Rejects a tensor that is listed twice.
std::vector<std::int32_t> plan_from_json(const JsonValue& json, const Policy& policy) {
  refuse_unless_settable(json, policy, false, "do not support plans");
  const auto numbers = json.as_integers(0, std::numeric_limits<std::int32_t>::max());
  std::vector<std::int32_t> tensors(numbers.begin(), numbers.end());
  std::sort(tensors.begin(), tensors.end());
  if (const auto twice = std::adjacent_find(tensors.begin(), tensors.end()); twice != tensors.end())
    json.fail(fmt::format("names tensor {} twice", *twice));
  return tensors;
}

int streams_from_json(const JsonValue& json, const Policy& policy) {
  const auto streams = static_cast<int>(json.as_integer(1, 2));
  refuse_unless_settable(json, policy, streams == 1, "use one copy stream");
  return streams;
}

std::vector<PolicyRule> policy_rules_from_json(const JsonValue& json, const Policy& policy) {
  std::vector<PolicyRule> rules = rules_from_json(json);
  const auto moves = [](const PolicyRule& rule) { return rule.placement != Placement{}; };
  refuse_unless_settable(json, policy, std::ranges::none_of(rules, moves),
                         "allow other rules only with the placement device");
  return rules;
}

FallbackPolicy fallback_from_json(const JsonValue& json) {
  json.allow_only({"policy", "predicted"});
  const JsonValue policy = json.at("policy");
  FallbackPolicy fallback{policy_from_json(policy.json(), policy.where())};
  if (fallback.policy.tensors)
    throw input_error(policy.where() + "a fallback is for other programs, so it cannot name tensors",
                      "Use rules instead of `tensors`.");
  if (const auto predicted = json.find("predicted"))
    fallback.predicted = metrics_from_json(predicted->json(), predicted->where());
  return fallback;
}

PolicyFile policy_file_from_json(const nlohmann::json& document, const std::string& path) {
  check_schema(document, kPolicySchema, path);
  const JsonValue object(document, path + ": ");
  object.allow_only(
      {"schema", "policy", "predicted", "trace_fingerprint", "saved_fingerprint", "parameters", "fallback"});
  const JsonValue policy = object.at("policy");
  PolicyFile file{policy_from_json(policy.json(), policy.where()), std::nullopt, {}};
  if (const auto predicted = object.find("predicted")) {
    file.predicted = metrics_from_json(predicted->json(), predicted->where());
  }
  if (const auto fingerprint = object.find("trace_fingerprint"))
    file.trace_fingerprint = fingerprint->as_string();
  if (const auto fingerprint = object.find("saved_fingerprint"))
    file.saved_fingerprint = fingerprint->as_string();
  if (const auto parameters = object.find("parameters"))
    file.parameters = parameter_settings_from_json(*parameters);
  if (const auto fallback = object.find("fallback")) file.fallback = fallback_from_json(*fallback);
  return file;
}

}  // namespace

nlohmann::ordered_json to_json(const Policy& policy) {
  nlohmann::ordered_json json = {
      {"name", policy.name},
      {"scheduler", traits_of(policy.scheduler).name},
      {"threshold_bytes", limit_to_json(policy.threshold_bytes)},
      {"tensors", policy.tensors ? nlohmann::ordered_json(*policy.tensors) : nlohmann::ordered_json(nullptr)},
      {"stash_count", limit_to_json(policy.stash_count)},
      {"stash_bytes", limit_to_json(policy.stash_bytes)},
      {"prefetch_bytes", policy.prefetch_bytes},
      {"copy_streams", policy.copy_streams},
      {"host_memory_bytes", limit_to_json(policy.host_memory_bytes)}};
  if (policy.disk_memory_bytes) json["disk_memory_bytes"] = *policy.disk_memory_bytes;
  if (uses_disk(policy) || policy.disk_buffer_bytes != kDefaultDiskBuffer)
    json["disk_buffer_bytes"] = policy.disk_buffer_bytes;
  if (!policy.rules.empty()) json["rules"] = rules_to_json(policy.rules);
  return json;
}

Policy policy_from_json(const nlohmann::json& json, const std::string& where) {
  const JsonValue object(json, where);
  object.allow_only({"name", "scheduler", "threshold_bytes", "tensors", "stash_count", "stash_bytes",
                     "prefetch_bytes", "copy_streams", "host_memory_bytes", "disk_memory_bytes",
                     "disk_buffer_bytes", "rules"});
  Policy policy;
  if (const auto name = object.find("name")) policy.name = name->as_string();
  if (const auto kind = object.find("scheduler")) {
    policy.scheduler = static_cast<SchedulerKind>(kind->as_one_of(scheduler_names()));
  }
  // A missing threshold means the default of Policy; only null means that nothing is offloaded.
  if (json.contains("threshold_bytes")) policy.threshold_bytes = limit_from_json(object, "threshold_bytes");
  policy.stash_count = limit_from_json(object, "stash_count");
  policy.stash_bytes = limit_from_json(object, "stash_bytes");
  policy.prefetch_bytes = limit_from_json(object, "prefetch_bytes").value_or(0);
  policy.host_memory_bytes = limit_from_json(object, "host_memory_bytes");
  policy.disk_memory_bytes = limit_from_json(object, "disk_memory_bytes");
  policy.disk_buffer_bytes = limit_from_json(object, "disk_buffer_bytes").value_or(kDefaultDiskBuffer);
  if (const auto tensors = object.find("tensors")) policy.tensors = plan_from_json(*tensors, policy);
  policy.copy_streams = traits_of(policy.scheduler).has_few_settings ? 1 : 2;
  if (const auto streams = object.find("copy_streams"))
    policy.copy_streams = streams_from_json(*streams, policy);
  if (const auto rules = object.find("rules")) policy.rules = policy_rules_from_json(*rules, policy);
  return policy;
}

PolicyFile read_policy_file(const std::string& path) {
  return policy_file_from_json(parse_document(*open_file(path), path), path);
}

PolicyFile parse_policy_file(const std::string& text, const std::string& name) {
  return policy_file_from_json(parse_document(text, name), name);
}

nlohmann::ordered_json to_json(const PolicyFile& file) {
  nlohmann::ordered_json json = {{"schema", kPolicySchema}, {"policy", to_json(file.policy)}};
  if (file.predicted) json["predicted"] = metrics_to_json(*file.predicted);
  if (!file.trace_fingerprint.empty()) json["trace_fingerprint"] = file.trace_fingerprint;
  if (!file.saved_fingerprint.empty()) json["saved_fingerprint"] = file.saved_fingerprint;
  if (file.parameters) json["parameters"] = to_json(*file.parameters);
  if (file.fallback) {
    json["fallback"] = {{"policy", to_json(file.fallback->policy)}};
    if (file.fallback->predicted) json["fallback"]["predicted"] = metrics_to_json(*file.fallback->predicted);
  }
  return json;
}

std::string format_policy_file(const PolicyFile& file) {
  return dump_json(to_json(file)) + "\n";
}

void refuse_foreign_plan(const Policy& policy, const PlannedStep& made_for, const PlannedStep& step,
                         const std::string& trace_of_run) {
  if (is_for(policy, made_for, step)) return;
  throw input_error(
      made_for.run_fingerprint.empty()
          ? "the policy names tensors, but not the run that it was written for (trace_fingerprint)"
          : fmt::format("the policy names tensors of a run with {}", difference(made_for, step)),
      (trace_of_run.empty() ? "Record a trace of this run with `--policy keep -o trace.json`, and tune it: "
                              "offprof tune trace.json -o policy.json"
                            : "Tune the trace: offprof tune " + trace_of_run + " -o policy.json"));
}

Policy policy_for_step(const Policy& policy, const std::optional<Policy>& fallback,
                       const PlannedStep& made_for, const PlannedStep& step, const std::string& trace_of_run,
                       std::vector<std::string>& notes) {
  if (is_for(policy, made_for, step)) return policy;
  if (!fallback) refuse_foreign_plan(policy, made_for, step, trace_of_run);
  notes.push_back(fmt::format("the policy's plan was made for a run with {}; its fallback is used: {}",
                              difference(made_for, step), describe(*fallback)));
  return *fallback;
}

PolicyFile load_policy(const std::string& name_or_path) {
  const std::vector<std::string> presets = preset_names();
  if (std::ranges::find(presets, name_or_path) != presets.end())
    return {preset_policy(name_or_path), std::nullopt, {}};
  std::error_code error;
  if (!std::filesystem::exists(name_or_path, error)) {
    throw input_error(
        fmt::format("'{}' is neither a preset nor an existing policy file", name_or_path),
        fmt::format("Presets: {}. `offprof tune` writes policy files.", fmt::join(presets, ", ")));
  }
  return read_policy_file(name_or_path);
}

}  // namespace offprof

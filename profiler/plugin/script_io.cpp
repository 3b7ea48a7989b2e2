#include "profiler/plugin/script_io.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"
#include "traces/format/run_info_io.h"
#include "traces/io/json_access.h"
#include "traces/io/json_document.h"

namespace offprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kShownProgress = {"nothing", "stages",
                                                            "steps"};              // by ShownProgress
constexpr std::array<std::string_view, 2> kErrorKinds = {"input", "environment"};  // by ErrorKind

Json to_json(const LinkDirection& direction) {
  return {{"bytes_per_second", direction.bytes_per_second},
          {"latency_ns", direction.latency_ns},
          {"start_ns", direction.start_ns}};
}

LinkDirection direction_from_json(const JsonValue& json) {
  return {json.at("bytes_per_second").as_amount(), json.at("latency_ns").as_integer(),
          json.at("start_ns").as_integer()};
}

Json to_json(const DiskRequest& disk) {
  return {{"folder", disk.folder},
          {"checksums", disk.checksums},
          {"compressed", disk.compressed},
          {"write", to_json(disk.speed.write)},
          {"read", to_json(disk.speed.read)}};
}

DiskRequest disk_from_json(const JsonValue& json) {
  DiskRequest disk;
  disk.folder = json.at("folder").as_string();
  disk.checksums = json.at("checksums").as_bool();
  disk.compressed = json.at("compressed").as_bool();
  disk.speed.write = direction_from_json(json.at("write"));
  disk.speed.read = direction_from_json(json.at("read"));
  return disk;
}

Json policies_to_json(const std::vector<Policy>& policies) {
  auto json = Json::array();
  for (const Policy& policy : policies) json.push_back(to_json(policy));
  return json;
}

Policy policy_at(const JsonValue& json) {
  return policy_from_json(json.json(), json.where());
}

Json to_json(const RunRequest& run) {
  Json json = {{"program", run.model_path},
               {"settings", to_json(run.settings, RunDetail::kFull)},
               {"threads", run.threads},
               {"device", run.device},
               {"policy", to_json(run.policy)},
               {"transforms", run.transforms},
               {"policy_made_for", run.policy_made_for},
               {"policy_saved_fingerprint", run.policy_saved_fingerprint},
               {"has_timeline", run.has_timeline}};
  if (run.fallback) json["fallback"] = to_json(*run.fallback);
  if (run.disk) json["disk"] = to_json(*run.disk);
  return json;
}

RunRequest run_from_json(const JsonValue& json) {
  RunRequest run;
  run.model_path = json.at("program").as_string();
  run.settings = settings_from_json(json.at("settings"), RunDetail::kFull);
  run.threads = static_cast<int>(json.at("threads").as_integer(1, kMostThreads));
  run.device = json.at("device").as_string();
  run.policy = policy_at(json.at("policy"));
  run.transforms = json.at("transforms").as_strings();
  run.policy_made_for = json.at("policy_made_for").as_string();
  run.policy_saved_fingerprint = json.at("policy_saved_fingerprint").as_string();
  run.has_timeline = json.at("has_timeline").as_bool();
  if (const auto fallback = json.find("fallback")) run.fallback = policy_at(*fallback);
  if (const auto disk = json.find("disk")) run.disk = disk_from_json(*disk);
  return run;
}

Json to_json(const MemoryRefusal& refusal) {
  Json json = {{"asked_bytes", refusal.asked_bytes},
               {"live_bytes", refusal.live_bytes},
               {"capacity_bytes", refusal.capacity_bytes}};
  if (refusal.reloaded) json["reloaded"] = *refusal.reloaded;
  return json;
}

MemoryRefusal refusal_from_json(const JsonValue& json) {
  MemoryRefusal refusal{json.at("asked_bytes").as_integer(),
                        json.at("live_bytes").as_integer(),
                        json.at("capacity_bytes").as_integer(),
                        {}};
  if (const auto reloaded = json.find("reloaded"))
    refusal.reloaded = static_cast<SavedId>(reloaded->as_integer());
  return refusal;
}

Json to_json(const StepGroup& group) {
  return {{"steps", group.steps},
          {"saved_tensors", group.saved_tensors},
          {"peak_bytes", group.peak_bytes},
          {"is_recorded", group.is_recorded}};
}

StepGroup group_from_json(const JsonValue& json) {
  return {json.at("steps").as_integer(), json.at("saved_tensors").as_integer(),
          json.at("peak_bytes").as_integer(), json.at("is_recorded").as_bool()};
}

Error error_from_json(const JsonValue& json) {
  return {static_cast<ErrorKind>(json.at("kind").as_one_of(kErrorKinds)), json.at("message").as_string(),
          json.at("hint").as_string()};
}

}  // namespace

std::string program_name(const ScriptRequest& request) {
  const std::string& path = request.run.model_path;
  std::string name = request.is_module ? path : std::filesystem::path(path).filename().string();
  if (!request.rank) return name;
  return fmt::format("{}, rank {} of {}", name, request.rank->rank, request.rank->world_size);
}

std::string refused_trace_path(const ScriptRequest& request) {
  return request.outcome_path + ".refused";
}

std::string format_script_request(const ScriptRequest& request) {
  Json json = {{"schema", kScriptRequestSchema},
               {"run", to_json(request.run)},
               {"is_module", request.is_module},
               {"arguments", request.arguments},
               {"fingerprint", request.fingerprint},
               {"applied_code", request.applied_code},
               {"step_function", request.step_function},
               {"has_default_steps", request.has_default_steps},
               {"progress", kShownProgress[static_cast<std::size_t>(request.progress)]},
               {"compared", policies_to_json(request.compared)},
               {"continues", request.continues},
               {"patience_steps", request.patience_steps},
               {"patience_seconds", request.patience_seconds},
               {"shape", request.shape},
               {"tool_version", request.tool_version},
               {"argv", request.argv},
               {"trace_path", request.trace_path},
               {"commands_path", request.commands_path},
               {"outcome_path", request.outcome_path}};
  if (const auto& gpu = request.virtual_gpu)
    json["virtual_gpu"] = {{"profile", gpu->profile},
                           {"libraries", gpu->libraries},
                           {"balanced_experts", gpu->balanced_experts},
                           {"cluster", gpu->cluster}};
  if (const auto& rank = request.rank)
    json["rank"] = {{"rank", rank->rank},
                    {"world_size", rank->world_size},
                    {"said", rank->said},
                    {"collectives_path", rank->collectives_path}};
  if (request.kernel_times) json["kernel_times"] = *request.kernel_times;
  return dump_json(json) + "\n";
}

ScriptRequest parse_script_request(const std::string& text, const std::string& name) {
  const nlohmann::json document = parse_document(text, name);
  check_schema(document, kScriptRequestSchema, name);
  const JsonValue json(document, name);
  ScriptRequest request;
  request.run = run_from_json(json.at("run"));
  request.is_module = json.at("is_module").as_bool();
  request.arguments = json.at("arguments").as_strings();
  request.fingerprint = json.at("fingerprint").as_string();
  request.applied_code = json.at("applied_code").as_string();
  request.step_function = json.at("step_function").as_string();
  request.has_default_steps = json.at("has_default_steps").as_bool();
  request.progress = static_cast<ShownProgress>(json.at("progress").as_one_of(kShownProgress));
  const JsonValue compared = json.at("compared");
  for (std::size_t i = 0; i < compared.size(); ++i)
    request.compared.push_back(policy_at(compared.element(i)));
  request.continues = json.at("continues").as_bool();
  request.patience_steps = static_cast<int>(json.at("patience_steps").as_integer(1, kMostSteps));
  request.patience_seconds = json.at("patience_seconds").as_amount();
  request.shape = json.at("shape").as_string();
  request.tool_version = json.at("tool_version").as_string();
  request.argv = json.at("argv").as_strings();
  request.trace_path = json.at("trace_path").as_string();
  request.commands_path = json.at("commands_path").as_string();
  request.outcome_path = json.at("outcome_path").as_string();
  if (const auto gpu = json.find("virtual_gpu"))
    request.virtual_gpu = {gpu->at("profile").as_string(), gpu->at("libraries").as_string(),
                           gpu->at("balanced_experts").as_bool(), gpu->at("cluster").as_string()};
  if (const auto rank = json.find("rank"))
    request.rank = {static_cast<int>(rank->at("rank").as_integer()),
                    static_cast<int>(rank->at("world_size").as_integer()), rank->at("said").as_string(),
                    rank->at("collectives_path").as_string()};
  if (const auto kernel_times = json.find("kernel_times")) request.kernel_times = kernel_times->as_string();
  return request;
}

std::string format_script_outcome(const ScriptOutcome& outcome) {
  Json json = {{"schema", kScriptOutcomeSchema}};
  if (outcome.error)
    json["error"] = {{"kind", kErrorKinds[static_cast<std::size_t>(outcome.error->kind())]},
                     {"message", outcome.error->what()},
                     {"hint", outcome.error->hint()}};
  if (outcome.refusal) json["refusal"] = to_json(*outcome.refusal);
  json["has_replayed_commands"] = outcome.has_replayed_commands;
  json["steps_with_other_commands"] = outcome.steps_with_other_commands;
  json["saved_by_user_hooks"] = outcome.saved_by_user_hooks;
  json["groups"] = Json::array();
  for (const StepGroup& group : outcome.groups) json["groups"].push_back(to_json(group));
  json["skipped_steps"] = outcome.skipped_steps;
  json["compared"] = Json::array();
  for (const ComparedMeasurement& compared : outcome.compared)
    json["compared"].push_back(
        {{"policy", to_json(compared.policy)}, {"measured", metrics_to_json(compared.measured)}});
  return dump_json(json) + "\n";
}

ScriptOutcome parse_script_outcome(const std::string& text, const std::string& name) {
  const nlohmann::json document = parse_document(text, name);
  check_schema(document, kScriptOutcomeSchema, name);
  const JsonValue json(document, name);
  ScriptOutcome outcome;
  if (const auto error = json.find("error")) {
    outcome.error = error_from_json(*error);
    return outcome;
  }
  if (const auto refusal = json.find("refusal")) outcome.refusal = refusal_from_json(*refusal);
  outcome.has_replayed_commands = json.at("has_replayed_commands").as_bool();
  outcome.steps_with_other_commands = static_cast<int>(json.at("steps_with_other_commands").as_integer());
  outcome.saved_by_user_hooks = json.at("saved_by_user_hooks").as_integer();
  outcome.skipped_steps = json.at("skipped_steps").as_integer();
  const JsonValue groups = json.at("groups");
  for (std::size_t i = 0; i < groups.size(); ++i)
    outcome.groups.push_back(group_from_json(groups.element(i)));
  const JsonValue compared = json.at("compared");
  for (std::size_t i = 0; i < compared.size(); ++i) {
    const JsonValue one = compared.element(i);
    const JsonValue measured = one.at("measured");
    outcome.compared.push_back(
        {policy_at(one.at("policy")), metrics_from_json(measured.json(), measured.where())});
  }
  return outcome;
}

}  // namespace offprof

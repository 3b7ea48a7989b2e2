#include <fmt/format.h>

#include <array>

#include "simulator/other_engines/export_targets.h"
#include "simulator/other_engines/import_sources.h"
#include "traces/io/json_access.h"
#include "traces/model/step_program.h"

// DeepSpeed 0.19: runtime/activation_checkpointing/config.py and checkpointing.py, runtime/zero/config.py.

namespace offprof {
namespace {

/// `max_fwd_stash_count` of DeepSpeed's offload of checkpoint inputs.
constexpr std::int64_t kStashCount = 2;

/// Returns the fragment `zero_optimization` that offloads parameters. ZeRO counts elements, not bytes.
nlohmann::ordered_json zero_of(const ParameterSettings& parameters, const ModelInfo& model,
                               std::vector<std::string>& differences) {
  const bool is_on_disk = parameters.place == "disk";
  nlohmann::ordered_json place = {{"device", is_on_disk ? "nvme" : "cpu"}, {"pin_memory", true}};
  if (is_on_disk) {
    place["nvme_path"] = "/local_nvme";
    differences.emplace_back("Set nvme_path to a folder of your disk.");
  }
  nlohmann::ordered_json zero = {{"stage", 3}, {"offload_param", place}, {"offload_optimizer", place}};
  if (parameters.window_bytes && model.parameter_bytes > 0) {
    const double bytes_each =
        static_cast<double>(model.parameter_bytes) / static_cast<double>(model.parameters);
    zero["stage3_max_live_parameters"] =
        static_cast<std::int64_t>(static_cast<double>(*parameters.window_bytes) / bytes_each);
  }
  return zero;
}

void read_checkpointing(const JsonValue& json, EngineImport& result) {
  const auto is_set = [&](std::string_view key) {
    const auto value = json.find(key);
    return value && value->as_bool();
  };
  if (is_set("cpu_checkpointing")) {
    for (const char* op : {kCheckpointOp, kTorchCheckpointOp})
      result.policy.rules.push_back({.op = op, .placement = {.place = Place::kHost}});
    result.policy.stash_count = kStashCount;
    result.differences.emplace_back(
        "cpu_checkpointing moves the inputs of checkpointed layers: in a trace of `offprof run --checkpoint "
        "PATTERNS` those of the modules that match.");
    result.differences.emplace_back(
        "DeepSpeed keeps the input of the last layer on the device; the policy moves it.");
  }
  for (const char* key : {"partition_activations", "contiguous_memory_optimization"})
    if (is_set(key)) result.differences.push_back(fmt::format("{} is not part of a policy.", key));
}

/// Returns the place of `offload_param` or `offload_optimizer`: `cpu`, `nvme`, or `none`.
std::string offload_device(const JsonValue& zero, std::string_view key) {
  static constexpr std::array<std::string_view, 3> kDevices = {"none", "cpu", "nvme"};
  const auto place = zero.find(key);
  if (!place) return "none";
  const auto device = place->find("device");
  return device ? std::string(kDevices[device->as_one_of(kDevices)]) : "none";
}

void read_zero(const JsonValue& json, EngineImport& result) {
  const std::string parameters = offload_device(json, "offload_param");
  const std::string optimizer = offload_device(json, "offload_optimizer");
  if (parameters != "none") {
    result.parameters = ParameterSettings{parameters == "nvme" ? "disk" : "host", std::nullopt};
    result.differences.push_back(fmt::format(
        "offload_param is parameter offload of a run: `offprof run MODEL.pt --offload-params {}`. A "
        "simulation has the parameters where they were when the trace was recorded.",
        result.parameters->place));
  } else if (optimizer != "none") {
    result.differences.emplace_back(
        "offload_optimizer without offload_param has no counterpart: offprof offloads parameters, gradients "
        "and "
        "optimizer state together.");
  }
  if (json.find("stage3_max_live_parameters"))
    result.differences.emplace_back("stage3_max_live_parameters is left to the run.");
}

}  // namespace

EngineExport export_to_deepspeed(const ExportRequest& request) {
  EngineExport result;
  result.differences = missing_features("DeepSpeed", request.file);
  const bool offloads = request.use.moves_any();
  result.settings["activation_checkpointing"] = {{"partition_activations", false},
                                                 {"contiguous_memory_optimization", false},
                                                 {"cpu_checkpointing", offloads}};
  if (offloads)
    result.differences.emplace_back(
        "DeepSpeed moves the inputs of checkpointed layers only. It has no threshold, and a fixed stash of 2 "
        "tensors.");
  if (checkpointed_modules(request.trace.program).empty())
    result.differences.emplace_back(
        "The step of the trace has no checkpointed modules. The setting has an effect only in a model that "
        "calls deepspeed.checkpointing.checkpoint for its layers.");
  if (request.use.recomputes_any())
    result.differences.emplace_back("DeepSpeed does not recompute single tensors.");
  if (request.file.parameters)
    result.settings["zero_optimization"] =
        zero_of(*request.file.parameters, request.trace.model, result.differences);
  result.snippet = dump_json(result.settings) + "\n";
  result.no_figures = "offprof does not model DeepSpeed's rules.";
  return result;
}

EngineImport import_from_deepspeed(const std::string& text, const std::string& path) {
  const nlohmann::json document = parse_document(text, path);
  const JsonValue json(document, path + ": ");
  EngineImport result;
  result.policy = preset_policy("keep");
  result.policy.name = "deepspeed";
  if (const auto checkpointing = json.find("activation_checkpointing"))
    read_checkpointing(*checkpointing, result);
  if (const auto zero = json.find("zero_optimization")) read_zero(*zero, result);
  return result;
}

}  // namespace offprof

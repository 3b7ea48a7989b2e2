#include <fmt/format.h>

#include "simulator/other_engines/config_text.h"
#include "simulator/other_engines/export_targets.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Returns true if offprof's callback accepts the policy: it moves tensors to host memory as they are.
bool suits_callback(const Policy& policy) {
  for (const PolicyRule& rule : policy.rules) {
    const Placement& placement = rule.placement;
    if (!placement.transform.empty()) return false;
    if (placement.place != Place::kDevice && placement.place != Place::kHost) return false;
  }
  return true;
}

}  // namespace

EngineExport export_to_transformers(const ExportRequest& request) {
  const Policy& policy = request.file.policy;
  const bool checkpoints = request.use.recomputes_any() || !request.trace.settings.checkpointed.empty();
  const bool has_callback = request.use.moves_any() && suits_callback(policy);
  if (!checkpoints && !has_callback)
    throw input_error(fmt::format("transformers has no setting for the policy {}", request.policy_name),
                      "A policy that moves tensors to host memory runs under offprof's OffloadCallback; one "
                      "that recomputes "
                      "tensors becomes gradient checkpointing.");
  EngineExport result;
  result.settings = nlohmann::ordered_json::object();
  if (checkpoints) {
    result.snippet +=
        "from transformers import TrainingArguments\n\n"
        "training_args = TrainingArguments(\n"
        "    output_dir=\"output\",\n"
        "    gradient_checkpointing=True,\n"
        "    gradient_checkpointing_kwargs={\"use_reentrant\": False},\n"
        ")\n";
    result.settings["gradient_checkpointing"] = true;
    result.settings["gradient_checkpointing_kwargs"] = {{"use_reentrant", false}};
    result.differences.emplace_back(
        "Gradient checkpointing recomputes whole layers of the model; it cannot choose modules or tensors.");
    result.no_figures =
        "offprof does not model the gradient checkpointing of transformers. Record the program with it: "
        "offprof run train.py.";
  }
  if (has_callback) {
    const std::string file = python_string(request.policy_name);
    if (checkpoints) result.snippet += "\n";
    result.snippet += fmt::format(
        "from offprof.integrations.transformers import OffloadCallback\n\n"
        "offloading = OffloadCallback({})\n"
        "# trainer = Trainer(..., callbacks=[offloading])\n",
        file);
    result.settings["callbacks"] = {fmt::format("OffloadCallback({})", file)};
    result.differences.emplace_back(
        "transformers has no setting for activation offloading; the callback runs offprof's engine in its "
        "Trainer.");
    if (!checkpoints) result.simulated = policy;
  } else if (request.use.moves_any()) {
    result.differences.emplace_back("Tensors that the policy moves stay on the device.");
  }
  if (request.file.parameters)
    result.differences.emplace_back("transformers offloads parameters through DeepSpeed or FSDP only.");
  return result;
}

}  // namespace offprof

#include <fmt/format.h>

#include <algorithm>

#include "simulator/other_engines/config_text.h"
#include "simulator/other_engines/export_targets.h"
#include "simulator/other_engines/module_paths.h"
#include "traces/base/error.h"

// TRL 0.24, trl/models/activation_offloading.py, and torchtune 0.6,
// torchtune/training/_activation_offloading.py, have the same class with the same rules: TrlScheduler.

namespace offprof {
namespace {

/// Library that has the class `OffloadActivations`.
struct HooksLibrary {
  std::string_view title;
  std::string_view module;  ///< of the class and of `NoOpManager`
  std::string_view use;     ///< comment that shows how its trainers take the context
};

constexpr HooksLibrary kTrl = {
    "TRL", "trl.models.activation_offloading",
    "# A trainer: trainer.maybe_activation_offload_context = offload_activations(trainer.model)\n"};
constexpr HooksLibrary kTorchtune = {
    "torchtune", "torchtune.training",
    "# A recipe: self.activations_handling_ctx = offload_activations(self._model)\n"};

/// Arguments of the class, and the modules whose tensors stay on the device.
struct HooksSettings {
  Bytes min_offload_size = 0;
  std::int64_t max_fwd_stash_size = 0;
  std::vector<std::string> kept_modules;  ///< with all modules below them
};

bool chooses_by_size(const Policy& policy) {
  return policy.threshold_bytes && !policy.tensors &&
         std::ranges::all_of(policy.rules,
                             [](const PolicyRule& rule) { return rule.placement == Placement{}; });
}

HooksSettings hooks_settings_of(const ExportRequest& request) {
  const Policy& policy = request.file.policy;
  HooksSettings settings;
  // Empty tensors, which a size of 0 would include, change nothing but the number of copies.
  settings.min_offload_size = std::max<Bytes>(
      1, chooses_by_size(policy) ? *policy.threshold_bytes : *request.use.smallest_moved_bytes());
  settings.max_fwd_stash_size = std::max<std::int64_t>(1, policy.stash_count.value_or(0));
  if (!policy.rules.empty() || policy.tensors)
    settings.kept_modules =
        covering_paths(request.use.keeping_modules(settings.min_offload_size), request.use.moving_modules());
  return settings;
}

Policy simulated_policy(const HooksSettings& settings, std::string_view name) {
  Policy policy = preset_policy("trl");
  policy.name = name;
  policy.threshold_bytes = settings.min_offload_size;
  policy.stash_count = settings.max_fwd_stash_size;
  for (const std::string& path : settings.kept_modules) {
    policy.rules.push_back({.module = path, .placement = {}});
    policy.rules.push_back({.module = path + ".*", .placement = {}});
  }
  return policy;
}

std::vector<std::string> differences_of(const HooksLibrary& library, const ExportRequest& request,
                                        const HooksSettings& settings) {
  const Policy& policy = request.file.policy;
  std::vector<std::string> differences = missing_features(library.title, request.file);
  if (policy.scheduler != SchedulerKind::kTrl) {
    differences.push_back(fmt::format(
        "{} copies in both directions on one stream, and copies each saved tensor by itself, views of "
        "parameters too.",
        library.title));
    if (policy.stash_count.value_or(0) > 1)
      differences.push_back(fmt::format(
          "max_fwd_stash_size counts all saved tensors, so fewer than {} offloaded ones are in the stash.",
          *policy.stash_count));
  }
  if (policy.stash_count.value_or(0) < 1)
    differences.push_back(fmt::format("The stash of {} has at least one tensor.", library.title));
  if (policy.stash_bytes)
    differences.push_back(fmt::format("The stash of {} has no limit in bytes; the policy's is {}.",
                                      library.title, format_bytes(*policy.stash_bytes)));
  if (!chooses_by_size(policy))
    differences.push_back(
        fmt::format("The policy chooses single tensors. {} moves all tensors of at least {} except those of "
                    "whole modules.",
                    library.title, format_bytes(settings.min_offload_size)));
  if (request.use.recomputes_any())
    differences.push_back(fmt::format("{} does not recompute tensors; see --to pytorch.", library.title));
  if (request.file.parameters)
    differences.push_back(fmt::format("{} does not offload parameters.", library.title));
  return differences;
}

std::string snippet_of(const HooksLibrary& library, const HooksSettings& settings) {
  const bool keeps = !settings.kept_modules.empty();
  std::string text =
      fmt::format("from {} import {}OffloadActivations\n\n", library.module, keeps ? "NoOpManager, " : "");
  if (keeps)
    text += fmt::format("# Modules whose saved tensors stay on the device.\nKEPT = {}\n\n",
                        python_list(settings.kept_modules));
  text +=
      "\ndef offload_activations(model):\n"
      "    \"\"\"Returns the context for forward and loss. Call it once, before training.\"\"\"\n";
  if (keeps)
    text +=
        "    keep = NoOpManager()\n"
        "    for path in KEPT:\n"
        "        for module in model.get_submodule(path).modules():\n"
        "            module.register_forward_pre_hook(lambda *_: keep.__enter__())\n"
        "            module.register_forward_hook(lambda *_: keep.__exit__(), always_call=True)\n";
  text += fmt::format(
      "    return OffloadActivations(\n"
      "        use_pin_memory=True,\n"
      "        use_streams=True,\n"
      "        min_offload_size={},\n"
      "        max_fwd_stash_size={},\n"
      "    )\n\n\n",
      settings.min_offload_size, settings.max_fwd_stash_size);
  return text + "# A loop: with offload_activations(model): loss = ...\n" + std::string(library.use);
}

EngineExport export_to(const HooksLibrary& library, const ExportRequest& request, std::string_view name) {
  if (!request.use.moves_any())
    throw input_error(fmt::format("the policy {} moves no tensor of this step, so {} has nothing to offload",
                                  request.policy_name, library.title),
                      request.use.recomputes_any() ? "Recomputed tensors: --to pytorch." : "");
  const HooksSettings settings = hooks_settings_of(request);
  EngineExport result;
  result.snippet = snippet_of(library, settings);
  result.settings = {{"use_pin_memory", true},
                     {"use_streams", true},
                     {"min_offload_size", settings.min_offload_size},
                     {"max_fwd_stash_size", settings.max_fwd_stash_size},
                     {"kept_modules", settings.kept_modules}};
  result.simulated = simulated_policy(settings, name);
  result.differences = differences_of(library, request, settings);
  return result;
}

}  // namespace

EngineExport export_to_trl(const ExportRequest& request) {
  return export_to(kTrl, request, "trl");
}

EngineExport export_to_torchtune(const ExportRequest& request) {
  return export_to(kTorchtune, request, "torchtune");
}

}  // namespace offprof

#include "cli/reports/advice/way_instructions.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/scheduler/placement_rules.h"

namespace offprof {
namespace {

std::string environment_comment(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables)
    text += fmt::format("  # in the environment: {}={}\n", name, shell_word(value));
  return text;
}

bool offloads(const Policy& policy) {
  return policy.threshold_bytes.has_value() && !(policy.tensors && policy.tensors->empty());
}

/// Returns the engines that express the way at least in part, of those that the program may use.
std::vector<std::string> targets_for(const WayInstructions& instructions, const Way& way) {
  if (way.configuration.parameters) return {"fsdp2", "deepspeed"};
  std::vector<std::string> targets = {"pytorch"};
  const auto add = [&](const std::string& engine) {
    if (instructions.source.empty() || instructions.source.find(engine) != std::string::npos)
      targets.push_back(engine);
  };
  if (way.policy == preset_policy("keep") || offloads(way.policy)) add("transformers");
  if (offloads(way.policy)) add("trl");
  return targets;
}

std::string exports_text(const WayInstructions& instructions, const Way& way) {
  const bool is_exportable = way.policy != preset_policy("keep") || !way.configuration.checkpointed.empty();
  if (!is_exportable || way.configuration.slices) return "";
  std::string text;
  for (const std::string& target : targets_for(instructions, way))
    text +=
        "  " + command_line({"export", instructions.policy, "--trace", kAdvisedTrace, "--to", target}) + "\n";
  return text;
}

/// Recording takes steps with nothing offloaded; the context of offprof's engine does not. Checkpointing is
/// up to the program there.
std::string script_text(const WayInstructions& instructions, const Way& way) {
  if (way.policy == preset_policy("keep")) return "";
  const std::string run = "  " +
                          command_line(with_options(without_virtual_gpu(instructions.run), {"--continue"}),
                                       instructions.variables) +
                          "\n";
  if (!way.configuration.checkpointed.empty())
    return instructions.is_job || instructions.first_steps_exceed ? "" : "In your own training:\n" + run;
  std::string text = fmt::format(
      "In your own training, with forward and loss within the context:\n"
      "{}"
      "  offloading = offprof.OffloadActivations(\"{}\")\n"
      "  with offloading:\n"
      "      loss = model(batch)\n",
      environment_comment(instructions.variables), instructions.policy);
  if (instructions.is_job || instructions.first_steps_exceed) return text;
  return text + "or without a change, if the first steps fit with nothing offloaded:\n" + run;
}

}  // namespace

bool first_steps_exceed(const Advice& advice, const Way& way, const Environment& environment) {
  const std::optional<Bytes> memory = usable_memory(environment);
  const auto exceeds = [&](const Way& other) {
    return other.policy == preset_policy("keep") &&
           other.configuration.checkpointed == way.configuration.checkpointed &&
           device_bytes_taken(other.metrics()) > memory;
  };
  return memory && (exceeds(advice.nothing) || std::ranges::any_of(advice.ways, exceeds));
}

std::string instructions_text(const WayInstructions& instructions, const Way& way) {
  const std::string run =
      command_line(with_options(instructions.run, {"-o", kAdvisedTrace}), instructions.variables) + "\n";
  std::string text = instructions.policy_command.empty()
                         ? "Next: " + run
                         : next_line(instructions.policy_command) + "Then: " + run;
  const std::string in_script = instructions.is_script ? script_text(instructions, way) : "";
  const std::string exports = exports_text(instructions, way);
  text += in_script;
  if (exports.empty()) return text;
  return text +
         (in_script.empty()
              ? "In your own training, as far as each engine can (export says what is left out):\n"
              : "or with other engines, as far as each can (export says what is left out):\n") +
         exports;
}

}  // namespace offprof

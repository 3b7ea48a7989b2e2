#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "simulator/other_engines/config_text.h"
#include "simulator/other_engines/export_targets.h"
#include "simulator/other_engines/module_paths.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Modules and operators on which PyTorch's parts work.
struct PyTorchSettings {
  std::vector<std::string> recomputing_blocks;  ///< blocks with recomputed tensors
  std::vector<std::string> nesting_blocks;      ///< others, within checkpointed modules or around them
  std::vector<std::string> nesting_movers;      ///< modules that move tensors, within recomputing blocks
  std::vector<std::string> recomputed_ops;      ///< their operators in `torch.ops`: `aten.gelu`
  std::vector<std::string> checkpointed;        ///< paths or patterns of the checkpointed modules
  bool saves_on_cpu = false;
  std::vector<std::string> saved_on_cpu;  ///< modules whose tensors move; empty: all
  std::vector<std::string> sharded;       ///< FSDP2: units of fully_shard
  bool offloads_parameters = false;
};

/// Returns `aten.gelu` for `aten::gelu`; empty if that is no name of an operator in Python.
std::string name_in_torch_ops(const std::string& op) {
  const std::size_t colons = op.find("::");
  if (colons == std::string::npos) return "";
  const std::string name = op.substr(0, colons) + "." + op.substr(colons + 2);
  const bool is_name = std::ranges::all_of(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; });
  return is_name ? name : "";
}

std::vector<std::string> blocks_of(const std::set<std::string>& modules) {
  std::set<std::string> blocks;
  for (const std::string& module : modules)
    if (!module.empty()) blocks.insert(block_of(module));
  return {blocks.begin(), blocks.end()};
}

/// Removes the paths for which `nests` holds. Returns them.
template <typename Nests>
std::vector<std::string> take_out(std::vector<std::string>& paths, const Nests& nests) {
  std::vector<std::string> taken;
  std::ranges::copy_if(paths, std::back_inserter(taken), nests);
  std::erase_if(paths, nests);
  return taken;
}

/// Moves the blocks that are within one of the modules, or around one, from the recomputing blocks to the
/// nesting ones. Selective checkpointing around a checkpointed module would save what that one recomputes.
void separate_nesting(PyTorchSettings& settings, const std::set<std::string>& modules) {
  settings.nesting_blocks = take_out(settings.recomputing_blocks, [&](const std::string& block) {
    return std::ranges::any_of(modules, [&](const std::string& module) {
      return is_within(block, module) || is_within(module, block);
    });
  });
}

/// Moves the modules within recomputing blocks from those whose tensors move to the nesting ones. Selective
/// checkpointing takes the copies of save_on_cpu for operators of the module, and raises an error in
/// backward.
void separate_nesting_movers(PyTorchSettings& settings) {
  if (settings.saved_on_cpu.empty()) return;
  settings.nesting_movers = take_out(settings.saved_on_cpu, [&](const std::string& module) {
    return std::ranges::any_of(settings.recomputing_blocks, [&](const std::string& block) {
      return module != block && is_within(module, block);
    });
  });
  settings.saves_on_cpu = !settings.saved_on_cpu.empty();
}

PyTorchSettings parts_of(const ExportRequest& request) {
  PyTorchSettings settings;
  const PolicyUse& use = request.use;
  for (const std::string& op : use.recomputed_ops())
    if (std::string name = name_in_torch_ops(op); !name.empty()) settings.recomputed_ops.push_back(name);
  settings.checkpointed = request.trace.settings.checkpointed;
  settings.recomputing_blocks = blocks_of(use.recomputing_modules());
  separate_nesting(settings, checkpointed_modules(request.trace.program));
  settings.saves_on_cpu = use.moves_any();
  const Bytes smallest = use.smallest_moved_bytes().value_or(0);
  if (const auto keeping = use.keeping_modules(smallest); !keeping.empty())
    settings.saved_on_cpu = covering_paths(use.moving_modules(), keeping);
  separate_nesting_movers(settings);
  settings.offloads_parameters = request.file.parameters.has_value();
  return settings;
}

bool is_pattern(const std::string& path) {
  return path.find_first_of("*?[") != std::string::npos;
}

std::string imports_of(const PyTorchSettings& settings) {
  std::string text;
  const bool selects = !settings.recomputing_blocks.empty();
  const bool matches = std::ranges::any_of(settings.checkpointed, is_pattern);
  if (matches) text += selects ? "import fnmatch\n" : "import fnmatch\n\n";
  const bool wraps = selects || !settings.checkpointed.empty() || !settings.saved_on_cpu.empty();
  if (selects) text += "import functools\n\nimport torch\n";
  if (settings.saves_on_cpu && settings.saved_on_cpu.empty())
    text += "from torch.autograd.graph import save_on_cpu\n";
  if (wraps) {
    text += "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (\n";
    text += "    apply_activation_checkpointing,\n";
    if (selects || !settings.checkpointed.empty()) text += "    checkpoint_wrapper,\n";
    if (!settings.saved_on_cpu.empty()) text += "    offload_wrapper,\n";
    text += ")\n";
  }
  if (matches) text += "from torch.nn import ModuleDict, ModuleList\n";
  if (!settings.sharded.empty())
    text += settings.offloads_parameters
                ? "from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard\n"
                : "from torch.distributed.fsdp import fully_shard\n";
  if (selects)
    text += "from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts\n";
  return text;
}

/// Returns a call that wraps the modules of the Python set `modules`. `wrapper` is the function that wraps
/// one.
std::string wrap_modules(std::string_view wrapper) {
  return fmt::format(
      "    apply_activation_checkpointing(\n"
      "        model,\n"
      "        checkpoint_wrapper_fn={},\n"
      "        check_fn=lambda module: module in modules,\n"
      "    )\n",
      wrapper);
}

/// Returns statements that wrap the modules of the Python list of paths `list`.
std::string wrap_call(std::string_view list, std::string_view wrapper) {
  return fmt::format("    modules = {{model.get_submodule(path) for path in {}}}\n", list) +
         wrap_modules(wrapper);
}

/// Returns statements that wrap the modules whose paths match one of the Python list of patterns `list`; of
/// nested ones the outermost, as offprof does. Containers have no forward.
std::string wrap_matches(std::string_view list, std::string_view wrapper) {
  return fmt::format(
             "    paths = [\n"
             "        path\n"
             "        for path, module in model.named_modules()\n"
             "        if not isinstance(module, (ModuleDict, ModuleList))\n"
             "        and any(fnmatch.fnmatchcase(path, pattern) for pattern in {})\n"
             "    ]\n"
             "    modules = {{\n"
             "        model.get_submodule(path)\n"
             "        for path in paths\n"
             "        if not any(path.startswith(outer + \".\") for outer in paths)\n"
             "    }}\n",
             list) +
         wrap_modules(wrapper);
}

std::string selective_text(const PyTorchSettings& settings) {
  if (settings.recomputing_blocks.empty()) return "";
  std::string ops;
  for (const std::string& op : settings.recomputed_ops) ops += fmt::format("    torch.ops.{},\n", op);
  return fmt::format(
      "\n# Modules with recomputed tensors.\nRECOMPUTED = {}\n"
      "# Operators whose results backward computes again.\nRECOMPUTED_OPS = [\n{}]\n\n\n"
      "def save_or_recompute(context, op, *args, **kwargs):\n"
      "    \"\"\"Recomputes the results of RECOMPUTED_OPS, and saves those of all other operators.\"\"\"\n"
      "    recompute = getattr(op, \"overloadpacket\", op) in RECOMPUTED_OPS\n"
      "    return CheckpointPolicy.PREFER_RECOMPUTE if recompute else CheckpointPolicy.MUST_SAVE\n\n\n"
      "def checkpoint_selectively(model):\n"
      "    \"\"\"Wraps the modules. Call it once, after the model is made.\"\"\"\n"
      "    context = functools.partial(create_selective_checkpoint_contexts, save_or_recompute)\n{}",
      python_list(settings.recomputing_blocks), ops,
      wrap_call("RECOMPUTED", "functools.partial(checkpoint_wrapper, context_fn=context)"));
}

std::string checkpoint_text(const PyTorchSettings& settings) {
  if (settings.checkpointed.empty()) return "";
  const auto wrap = std::ranges::any_of(settings.checkpointed, is_pattern) ? wrap_matches : wrap_call;
  return fmt::format(
      "\n# Modules that backward runs again.\nCHECKPOINTED = {}\n\n\n"
      "def checkpoint_modules(model):\n"
      "    \"\"\"Wraps the modules. Call it once, after the model is made.\"\"\"\n{}",
      python_list(settings.checkpointed), wrap("CHECKPOINTED", "checkpoint_wrapper"));
}

std::string offload_text(const PyTorchSettings& settings) {
  if (!settings.saves_on_cpu) return "";
  if (settings.saved_on_cpu.empty())
    return "\n\ndef offload_activations():\n"
           "    \"\"\"Returns the context for forward and loss.\"\"\"\n"
           "    return save_on_cpu(pin_memory=True)\n";
  return fmt::format(
      "\n# Modules whose saved tensors wait in host memory.\nOFFLOADED = {}\n\n\n"
      "def offload_activations(model):\n"
      "    \"\"\"Wraps the modules. Call it once, after the model is made.\"\"\"\n{}",
      python_list(settings.saved_on_cpu), wrap_call("OFFLOADED", "offload_wrapper"));
}

std::string shard_text(const PyTorchSettings& settings) {
  if (settings.sharded.empty()) return "";
  const std::string_view policy =
      settings.offloads_parameters ? ", offload_policy=CPUOffloadPolicy(pin_memory=True)" : "";
  return fmt::format(
      "\n# Units of fully_shard. Shard after the modules are wrapped.\nSHARDED = {}\n\n\n"
      "def shard(model):\n"
      "    \"\"\"Shards the modules, then the rest of the model.\"\"\"\n"
      "    for path in SHARDED:\n"
      "        fully_shard(model.get_submodule(path){})\n"
      "    fully_shard(model{})\n",
      python_list(settings.sharded), policy, policy);
}

nlohmann::ordered_json to_json(const PyTorchSettings& settings) {
  nlohmann::ordered_json json = {{"recompute_modules", settings.recomputing_blocks},
                                 {"recompute_ops", settings.recomputed_ops},
                                 {"checkpoint_modules", settings.checkpointed},
                                 {"save_on_cpu", settings.saves_on_cpu},
                                 {"offload_modules", settings.saved_on_cpu}};
  if (!settings.sharded.empty()) {
    json["fully_shard"] = settings.sharded;
    json["cpu_offload_policy"] = settings.offloads_parameters;
  }
  return json;
}

std::vector<std::string> differences_of(std::string_view title, const ExportRequest& request,
                                        const PyTorchSettings& settings) {
  const Policy& policy = request.file.policy;
  std::vector<std::string> differences = missing_features(title, request.file);
  if (settings.saves_on_cpu) {
    differences.emplace_back(
        "save_on_cpu moves every saved tensor, small ones and parameters too, and the compute stream waits "
        "for "
        "each copy: it has no threshold, no stash and no side stream.");
  }
  if (!settings.recomputing_blocks.empty())
    differences.emplace_back(
        "Selective checkpointing saves the results of all other operators in the wrapped modules, also those "
        "that autograd would not save.");
  if (!settings.nesting_blocks.empty())
    differences.push_back(
        fmt::format("Selective checkpointing does not nest with checkpointed modules, so nothing is "
                    "recomputed by operator in "
                    "{}.",
                    fmt::join(settings.nesting_blocks, ", ")));
  if (!settings.nesting_movers.empty())
    differences.push_back(
        fmt::format("save_on_cpu does not work within selective checkpointing, so no tensors of {} move.",
                    fmt::join(settings.nesting_movers, ", ")));
  if (policy.tensors && settings.saves_on_cpu)
    differences.push_back(fmt::format("{} cannot choose single tensors, as the policy's plan does.", title));
  return differences;
}

EngineExport export_parts(std::string_view title, const ExportRequest& request,
                          const PyTorchSettings& settings) {
  EngineExport result;
  result.snippet = imports_of(settings) + selective_text(settings) + checkpoint_text(settings) +
                   offload_text(settings) + shard_text(settings);
  result.settings = to_json(settings);
  result.differences = differences_of(title, request, settings);
  return result;
}

}  // namespace

EngineExport export_to_pytorch(const ExportRequest& request) {
  const PyTorchSettings settings = parts_of(request);
  if (!settings.saves_on_cpu && settings.recomputing_blocks.empty() && settings.checkpointed.empty())
    throw input_error(
        fmt::format("the policy {} neither moves nor recomputes a tensor of this step, and the step has no "
                    "checkpointed modules",
                    request.policy_name));
  EngineExport result = export_parts("PyTorch", request, settings);
  if (settings.offloads_parameters)
    result.differences.emplace_back("PyTorch offloads parameters with FSDP only; see --to fsdp2.");
  result.no_figures =
      "they cannot be derived from the trace: save_on_cpu copies each saved tensor by itself, and PyTorch's "
      "checkpointing keeps results of operators that the trace does not have. Add --record to record the "
      "program again with these settings.";
  return result;
}

EngineExport export_to_fsdp2(const ExportRequest& request) {
  PyTorchSettings settings = parts_of(request);
  settings.sharded = blocks_of(saving_modules(request.trace.program));
  EngineExport result = export_parts("FSDP2", request, settings);
  if (settings.saves_on_cpu)
    result.differences.emplace_back(
        "FSDP2 has no setting for activation offloading; the snippet uses PyTorch's save_on_cpu.");
  if (settings.offloads_parameters && request.file.parameters->window_bytes)
    result.differences.emplace_back("CPUOffloadPolicy has no limit of parameters on the device.");
  if (settings.offloads_parameters && request.file.parameters->place != "host")
    result.differences.emplace_back("CPUOffloadPolicy keeps parameters in host memory, not on a disk.");
  result.no_figures =
      "the trace is of one device, and offprof does not model sharding. Record the program with the snippet: "
      "offprof run train.py.";
  return result;
}

}  // namespace offprof

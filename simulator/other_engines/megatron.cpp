#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <ranges>
#include <sstream>
#include <string_view>
#include <vector>

#include "simulator/other_engines/export_targets.h"
#include "simulator/other_engines/import_sources.h"
#include "simulator/other_engines/module_paths.h"
#include "traces/base/error.h"

// Megatron Core 0.16: core/transformer/transformer_config.py (fine-grained activation offloading, CPU
// offloading), and the modules that core/transformer and core/models/gpt name.

namespace offprof {
namespace {

/// One module of `--offload-modules`, and the last components of the paths of the modules that have its
/// tensors: in Megatron Core, and in transformers' models of the same structure.
struct MegatronModule {
  std::string_view name;
  std::array<std::string_view, 4> endings;
};

constexpr std::array<MegatronModule, 7> kModules = {{
    {"attn_norm", {"input_layernorm"}},
    {"qkv_linear", {"self_attention.linear_qkv", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    {"core_attn", {"self_attention.core_attention", "self_attn"}},
    {"attn_proj", {"self_attention.linear_proj", "self_attn.o_proj"}},
    {"mlp_norm", {"pre_mlp_layernorm", "post_attention_layernorm"}},
    {"expert_fc1", {"mlp.experts.linear_fc1"}},
    {"moe_act", {"mlp.experts"}},
}};

std::vector<std::string_view> module_names() {
  std::vector<std::string_view> names;
  for (const MegatronModule& module : kModules) names.push_back(module.name);
  return names;
}

/// `min_offloaded_tensor_size` of TransformerConfig, in elements.
constexpr std::int64_t kDefaultMinElements = std::int64_t{1024} * 1024;
constexpr std::int64_t kMostLayers = 10'000;
/// Largest tensor size that a flag can name, in elements: sizes in bytes stay far below 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

bool ends_with(const std::string& path, std::string_view ending) {
  return !ending.empty() && path.ends_with(ending) &&
         (path.size() == ending.size() || path[path.size() - ending.size() - 1] == '.');
}

Bytes element_bytes(const std::string& dtype) {
  static const std::map<std::string, Bytes, std::less<>> kBytes = {
      {"float64", 8}, {"float32", 4}, {"bfloat16", 2}, {"float16", 2}};
  const auto entry = kBytes.find(dtype);
  return entry == kBytes.end() ? 4 : entry->second;
}

/// Returns the modules of kModules in which the policy moves tensors, in the order of that table.
std::vector<std::string> moved_modules(const std::set<std::string>& moving) {
  std::vector<std::string> names;
  for (const MegatronModule& module : kModules) {
    const bool moves = std::ranges::any_of(module.endings, [&](std::string_view ending) {
      return std::ranges::any_of(moving, [&](const std::string& path) { return ends_with(path, ending); });
    });
    if (moves) names.emplace_back(module.name);
  }
  return names;
}

void add_required_modules(std::vector<std::string>& names, std::vector<std::string>& differences) {
  if (std::ranges::find(names, "attn_proj") == names.end() ||
      std::ranges::find(names, "core_attn") != names.end())
    return;
  names.insert(std::ranges::find(names, "attn_proj"), "core_attn");
  differences.emplace_back("attn_proj needs core_attn, which the policy does not move.");
}

// --- flags ---

/// Flags of a command line with their values.
class Flags {
 public:
  /// Reads words that are separated by blanks. Skips comments (`# ...`), line continuations, quotes and
  /// brackets of shell arrays.
  Flags(const std::string& text, std::string path) : path_(std::move(path)) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (const std::size_t hash = line.find('#'); hash != std::string::npos) line.resize(hash);
      std::ranges::replace_if(
          line, [](char c) { return std::string_view("\\\"'()").find(c) != std::string_view::npos; }, ' ');
      std::istringstream words(line);
      for (std::string word; words >> word;) add(word);
    }
  }

  bool has(const std::string& flag) const { return values_.contains(flag); }
  std::vector<std::string> values(const std::string& flag) const {
    const auto entry = values_.find(flag);
    return entry == values_.end() ? std::vector<std::string>() : entry->second;
  }
  /// Returns the whole number after the flag, `otherwise` without the flag. Throws Error (input) for another
  /// value, or one that is not from 0 to `most`.
  std::int64_t number(const std::string& flag, std::int64_t otherwise, std::int64_t most) const {
    if (!has(flag)) return otherwise;
    const std::vector<std::string> texts = values(flag);
    std::int64_t value = -1;
    if (!texts.empty()) {
      const std::string& text = texts.front();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size()) value = -1;
    }
    if (value < 0 || value > most)
      throw input_error(fmt::format("{}: {} needs a whole number from 0 to {}", path_, flag, most),
                        "Shell variables are not expanded: write the number.");
    return value;
  }

 private:
  void add(const std::string& word) {
    if (!word.starts_with("--")) {
      if (!last_.empty()) values_[last_].push_back(word);
      return;
    }
    const std::size_t equals = word.find('=');
    last_ = word.substr(0, equals);
    values_[last_].clear();
    if (equals != std::string::npos) values_[last_].push_back(word.substr(equals + 1));
  }

  std::string path_;
  std::string last_;
  std::map<std::string, std::vector<std::string>> values_;
};

void move_modules(const Flags& flags, const std::string& path, Bytes bytes_each, EngineImport& result) {
  const std::int64_t elements =
      flags.number("--min-offloaded-tensor-size", kDefaultMinElements, kMostElements);
  const auto names = flags.values("--offload-modules");
  if (names.empty())
    throw input_error(path + ": --fine-grained-activation-offloading needs --offload-modules",
                      "Megatron-LM refuses it too.");
  for (const std::string& name : names) {
    const auto* const module = std::ranges::find(kModules, name, &MegatronModule::name);
    if (module == kModules.end())
      throw input_error(fmt::format("{}: --offload-modules: unknown module '{}'", path, name));
    for (std::string_view ending : module->endings) {
      if (ending.empty()) continue;
      result.policy.rules.push_back({.module = fmt::format("*{}", ending),
                                     .min_bytes = elements * bytes_each,
                                     .placement = {.place = Place::kHost}});
    }
  }
}

void move_layers(std::int64_t layers, EngineImport& result) {
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (const char* below : {"", ".*"})
      result.policy.rules.push_back(
          {.module = fmt::format("*layers.{}{}", layer, below), .placement = {.place = Place::kHost}});
}

}  // namespace

EngineExport export_to_megatron(const ExportRequest& request) {
  EngineExport result;
  result.differences = missing_features("Megatron-LM", request.file);
  std::vector<std::string> names = moved_modules(request.use.moving_modules());
  const bool recomputes = request.use.recomputes_any() || !request.trace.settings.checkpointed.empty();
  if (names.empty() && !recomputes)
    throw input_error(
        fmt::format("the policy {} moves no tensor of a module that Megatron-LM can offload",
                    request.policy_name),
        fmt::format("Its modules: {}. The trace's modules have to be named as in Megatron Core or in "
                    "transformers' Llama.",
                    fmt::join(module_names(), ", ")));
  if (!names.empty()) {
    add_required_modules(names, result.differences);
    const Bytes threshold = request.file.policy.threshold_bytes && !request.file.policy.tensors
                                ? *request.file.policy.threshold_bytes
                                : *request.use.smallest_moved_bytes();
    const Bytes bytes_each = element_bytes(main_dtype(request.trace.program));
    const std::int64_t elements = (threshold + bytes_each - 1) / bytes_each;
    result.settings = {{"fine_grained_activation_offloading", true},
                       {"offload_modules", names},
                       {"min_offloaded_tensor_size", elements}};
    result.snippet = fmt::format(
        "--fine-grained-activation-offloading \\\n--offload-modules {} \\\n--min-offloaded-tensor-size {}\n",
        fmt::join(names, " "), elements);
    result.differences.push_back(
        fmt::format("min_offloaded_tensor_size counts elements: {} of {} bytes each are the policy's {}.",
                    elements, bytes_each, format_bytes(threshold)));
    result.differences.emplace_back(
        "Megatron-LM moves the inputs of these modules in all layers; it has no stash and no choice of "
        "single "
        "tensors.");
  }
  if (recomputes) {
    result.settings["recompute_granularity"] = "full";
    result.settings["recompute_method"] = "uniform";
    result.settings["recompute_num_layers"] = 1;
    result.snippet =
        "--recompute-granularity full \\\n--recompute-method uniform \\\n--recompute-num-layers 1" +
        (result.snippet.empty() ? "\n" : " \\\n" + result.snippet);
    result.differences.emplace_back(
        "Megatron-LM recomputes whole layers, not the policy's tensors or modules.");
  }
  if (request.file.parameters) result.differences.emplace_back("The flags do not offload parameters.");
  result.no_figures = "offprof does not model Megatron-LM's rules.";
  return result;
}

EngineImport import_from_megatron(const std::string& text, const std::string& path) {
  const Flags flags(text, path);
  EngineImport result;
  result.policy = preset_policy("keep");
  result.policy.name = "megatron";
  const bool is_half = flags.has("--bf16") || flags.has("--fp16");
  const std::int64_t layers = flags.number("--cpu-offloading-num-layers", 0, kMostLayers);
  if (flags.has("--fine-grained-activation-offloading")) {
    if (layers > 0)
      throw input_error(path +
                            ": --fine-grained-activation-offloading and --cpu-offloading-num-layers exclude "
                            "each other",
                        "Megatron-LM refuses them together too.");
    move_modules(flags, path, is_half ? 2 : 4, result);
    result.differences.emplace_back(
        "Megatron-LM keeps the last group of tensors on the device, and reloads ahead; the policy reloads on "
        "demand.");
  } else if (layers > 0) {
    move_layers(layers, result);
    result.differences.emplace_back(
        "Transformer Engine reloads layer by layer; the policy reloads on demand.");
  }
  for (const char* flag : {"--recompute-granularity", "--recompute-activations"})
    if (flags.has(flag))
      result.differences.push_back(
          fmt::format("{} changes the step itself: record a trace of the training with it.", flag));
  if (flags.has("--cpu-offloading-weights"))
    result.differences.emplace_back("--cpu-offloading-weights is not part of a policy.");
  return result;
}

}  // namespace offprof

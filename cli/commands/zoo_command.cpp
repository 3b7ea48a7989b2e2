#include "cli/commands/zoo_command.h"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "cli/plugin/engine_loader.h"
#include "cli/reports/next_command.h"
#include "cli/terminal/text_table.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "engine/models/zoo/blueprint.h"
#include "engine/models/zoo/models.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

/// Parameters, gradients and AdamW's two states: the minimum that is on the device.
constexpr std::int64_t kTensorsPerWeight = 4;

std::int64_t count_parameters(const ModuleBlueprint& module) {
  std::int64_t count = 0;
  for (const TensorBlueprint& parameter : module.parameters)
    count +=
        std::accumulate(parameter.shape.begin(), parameter.shape.end(), std::int64_t{1}, std::multiplies<>());
  for (const ModuleBlueprint& child : module.children) count += count_parameters(child);
  return count;
}

/// Result of `zoo make`.
struct ZooMakeReport {
  std::string model;
  std::map<std::string, std::int64_t> sizes;
  std::uint64_t seed = 0;
  ZooWeights weights;
  std::string output;
};

nlohmann::ordered_json to_json(const ZooMakeReport& report) {
  return {{"model", report.model},         {"sizes", report.sizes},       {"seed", report.seed},
          {"dtype", report.weights.dtype}, {"meta", report.weights.meta}, {"output", report.output}};
}

std::string to_text(const ZooMakeReport& report, const Page& page) {
  std::string sizes;
  for (const auto& [name, value] : report.sizes) sizes += fmt::format(", {} {}", name, value);
  const std::string weights = report.weights.meta ? "meta parameters" : fmt::format("seed {}", report.seed);
  const std::string made =
      fmt::format("{}: {}{}, {}, {}", report.output, report.model, sizes, report.weights.dtype, weights);
  const std::string device =
      report.weights.meta ? " " + virtual_device_flags(report.model, report.sizes, report.weights.dtype) : "";
  return wrap(made, page.width, 0) +
         fmt::format("\nNext: offprof run {}{} -o trace.json\n", shell_word(report.output), device);
}

/// Returns `  --preset 7b: batch 1, ffn 11008, ...`.
std::string preset_line(const ZooPreset& preset, const Page& page) {
  std::string sizes;
  for (const auto& [name, value] : preset.sizes)
    sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", name, value);
  const std::string head = fmt::format("  --preset {}: ", preset.name);
  return head + wrap(sizes, page.width, head.size()) + "\n";
}

class ZooCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.require_subcommand(1);
    list_ = app.add_subcommand("list", "List the models and their sizes");
    add_output_option(*list_, list_output_, "File for the list (default -: standard output)");
    make_ = app.add_subcommand("make", "Write a model and its input specs to a TorchScript file");
    make_->add_option("NAME", name_, "Name of a model in `offprof zoo list`")->required()->type_name("MODEL");
    add_output_option(*make_, model_path_, "File for the model")->required();
    add_seed_option(*make_, seed_);
    make_->add_option("--preset", preset_,
                      "Named set of sizes, which other flags override: " + preset_names());
    make_->add_option("--dtype", weights_.dtype, "Type of the parameters (default float32)")
        ->type_name("float32|bfloat16|float16");
    make_->add_flag(
        "--meta", weights_.meta,
        "Use meta parameters, which have no memory (as on PyTorch's meta device), for models of any size; "
        "such a model runs on --device virtual only");
    add_size_options(*make_);
  }

  ExitStatus run(Context& context) override {
    if (list_->parsed()) {
      context.publish(ZooListReport{zoo_models()}, list_output_);
    } else {
      make(context);
    }
    return ExitStatus::kOk;
  }

 private:
  static std::string preset_names() {
    std::string text;
    for (const ZooModel& model : zoo_models())
      for (const ZooPreset& preset : model.presets)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", model.name, preset.name);
    return text;
  }

  /// Returns the preset's sizes, overridden by the sizes from flags.
  std::map<std::string, std::int64_t> overrides() const {
    std::map<std::string, std::int64_t> sizes = sizes_;
    if (!preset_.empty()) sizes.merge(std::map(zoo_preset_sizes(find_zoo_model(name_), preset_)));
    return sizes;
  }

  /// Adds a flag for every size that any model has. Later checks reject flags that the chosen model does not
  /// have.
  void add_size_options(CLI::App& app) {
    std::map<std::string, std::string> users;
    for (const ZooModel& model : zoo_models()) {
      for (const ZooSize& size : model.sizes) {
        std::string& text = users[size.name];
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", model.name, size.value);
      }
    }
    for (const auto& [size, text] : users) {
      const std::function<void(std::int64_t)> take = [this, size = size](std::int64_t value) {
        sizes_[size] = value;
      };
      add_count_option(app, "--" + size, take, 0, std::numeric_limits<std::int64_t>::max(),
                       "Default: " + text)
          ->group("Sizes");
    }
  }

  void make(Context& context) {
    const auto chosen = overrides();
    const auto sizes = resolve_zoo_sizes(find_zoo_model(name_), chosen);
    check_zoo_dtype(weights_.dtype);
    if (model_path_ == "-")
      throw input_error("a model cannot be written to standard output", "Name a file: -o model.pt");
    check_writable(model_path_);
    {
      StatusLine status = context.status_line();
      context.detail("loading the engine library and LibTorch");
      status.show("loading LibTorch");
      EnginePlugin& engine = load_engine();
      status.show("creating " + name_);
      engine.make_zoo_model(name_, chosen, seed_, model_path_, weights_);
    }
    context.publish(ZooMakeReport{name_, sizes, seed_, weights_, model_path_});
  }

  CLI::App* list_ = nullptr;
  CLI::App* make_ = nullptr;
  std::string list_output_ = "-";
  std::string name_;
  std::string model_path_;
  std::uint64_t seed_ = 0;
  std::string preset_;
  ZooWeights weights_;
  std::map<std::string, std::int64_t> sizes_;
};

}  // namespace

nlohmann::ordered_json to_json(const ZooListReport& report) {
  auto models = nlohmann::ordered_json::array();
  for (const ZooModel& model : report.models) {
    auto sizes = nlohmann::ordered_json::array();
    for (const ZooSize& size : model.sizes) {
      sizes.push_back({{"name", size.name},
                       {"default", size.value},
                       {"min", size.min},
                       {"max", size.max},
                       {"what", size.what}});
    }
    auto presets = nlohmann::ordered_json::array();
    for (const ZooPreset& preset : model.presets)
      presets.push_back({{"name", preset.name}, {"sizes", preset.sizes}});
    models.push_back({{"name", model.name},
                      {"what", model.what},
                      {"sizes", std::move(sizes)},
                      {"presets", std::move(presets)}});
  }
  return {{"models", std::move(models)}};
}

std::string to_text(const ZooListReport& report, const Page& page) {
  std::string text;
  for (const ZooModel& model : report.models) {
    text += page.paint(Tone::kStrong, model.name) + ": " +
            wrap(model.what, page.width, model.name.size() + 2) + "\n";
    TextTable table({{"", Align::kLeft}, {"", Align::kRight}, {"", Align::kLeft}});
    for (const ZooSize& size : model.sizes)
      table.add_row({"--" + size.name, std::to_string(size.value), size.what});
    text += table.render(page);
    for (const ZooPreset& preset : model.presets) text += preset_line(preset, page);
    text += "\n";
  }
  return text + "Create one: offprof zoo make transformer -o model.pt --batch 4\n";
}

std::string virtual_device_flags(const std::string& model, const std::map<std::string, std::int64_t>& sizes,
                                 const std::string& dtype) {
  const std::int64_t element_bytes = dtype == "float32" ? 4 : 2;
  const std::int64_t parameters = count_parameters(draw_zoo_model(model, sizes).root);
  const bool fits =
      kTensorsPerWeight * element_bytes * parameters < load_profile(kDefaultProfile).memory_bytes;
  return fits ? "--device virtual" : "--device virtual --device-memory 2TiB";
}

std::unique_ptr<Subcommand> make_zoo_command() {
  return std::make_unique<ZooCommand>();
}

}  // namespace offprof

#include "cli/zoo_command.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>

#include "cli/engine_loader.h"
#include "cli/options.h"
#include "cli/text_table.h"
#include "engine/zoo/models.h"
#include "traces/error.h"
#include "traces/file.h"

namespace offprof {
namespace {

/// What `zoo make` made.
struct ZooMakeReport {
  std::string model;
  std::map<std::string, std::int64_t> sizes;
  std::uint64_t seed = 0;
  std::string output;
};

nlohmann::ordered_json to_json(const ZooMakeReport& report) {
  return {{"model", report.model}, {"sizes", report.sizes}, {"seed", report.seed}, {"output", report.output}};
}

std::string to_text(const ZooMakeReport& report, const Page& page) {
  std::string sizes;
  for (const auto& [name, value] : report.sizes) sizes += fmt::format(", {} {}", name, value);
  const std::string made = fmt::format("{}: {}{}, seed {}", report.output, report.model, sizes, report.seed);
  return wrap(made, page.width, 0) + fmt::format("\nNext: offprof run {} -o trace.json\n", report.output);
}

class ZooCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.require_subcommand(1);
    list_ = app.add_subcommand("list", "What models there are, and their sizes");
    add_output_option(*list_, list_output_, "Where the list goes (default -)");
    make_ = app.add_subcommand("make", "Write a model as a TorchScript file, its input specs inside");
    make_->add_option("NAME", name_, "One of `offprof zoo list`")->required();
    add_output_option(*make_, model_path_, "Where the model goes")->required();
    add_seed_option(*make_, seed_);
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
  /// A flag for every size that some model has; which of them the chosen one has is checked when it is known.
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
    const auto sizes = resolve_zoo_sizes(find_zoo_model(name_), sizes_);
    if (model_path_ == "-")
      throw input_error("a model cannot be written to standard output", "Name a file: -o model.pt");
    check_writable(model_path_);
    {
      StatusLine status = context.status_line();
      context.detail("opening the engine library, which brings LibTorch");
      status.show("opening LibTorch");
      EnginePlugin& engine = load_engine();
      status.show("making " + name_);
      engine.make_zoo_model(name_, sizes_, seed_, model_path_);
    }
    context.publish(ZooMakeReport{name_, sizes, seed_, model_path_});
  }

  CLI::App* list_ = nullptr;
  CLI::App* make_ = nullptr;
  std::string list_output_ = "-";
  std::string name_;
  std::string model_path_;
  std::uint64_t seed_ = 0;
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
    models.push_back({{"name", model.name}, {"what", model.what}, {"sizes", std::move(sizes)}});
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
    text += table.render(page) + "\n";
  }
  return text + "Make one: offprof zoo make transformer -o model.pt --batch 4\n";
}

std::unique_ptr<Subcommand> make_zoo_command() {
  return std::make_unique<ZooCommand>();
}

}  // namespace offprof

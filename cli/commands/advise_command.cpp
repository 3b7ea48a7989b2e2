#include <fmt/format.h>

#include <algorithm>

#include "cli/advice/child_recorder.h"
#include "cli/commands/commands.h"
#include "cli/options/device_options.h"
#include "cli/options/options.h"
#include "cli/options/script_options.h"
#include "cli/reports/advice_report.h"
#include "cli/reports/next_command.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/format/policy_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

constexpr double kMostAdvisedSlowdown = 100;

class AdviseCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    program_.add_to(app, "Training script (train.py) or TorchScript module (model.pt)");
    app.add_option("--input", inputs_, "Input of a model: see offprof run")->type_name("SPEC");
    app.add_option("--optimizer", optimizer_, "Optimizer of a model: none, sgd, adamw (default adamw)")
        ->type_name("NAME");
    add_parsed_option(
        app, "--device", "DEVICE", [this](const std::string& text) { device_ = text; },
        "Device to record and run on: see offprof run (default virtual)");
    add_capacity_option(app, "--memory-budget", request_.memory_budget_bytes,
                        "Limit of device memory (default: the device's memory)");
    add_parsed_option(
        app, "--max-slowdown", "PERCENT",
        [this](const std::string& text) {
          request_.max_slowdown = parse_percentage(text, "slowdown", kMostAdvisedSlowdown);
        },
        "Limit of the step time, relative to doing nothing (default: none)");
    add_choice_option<Objective>(app, "--goal", request_.objective,
                                 {{"time", Objective::kTime}, {"memory", Objective::kMemory}},
                                 "What to minimize within the limits (default time)");
    add_output_option(app, output_, "File for the policy of the recommended way (default: none)");
  }

  ExitStatus run(Context& context) override {
    program_.choose_program(context.argv());
    if (!output_.empty()) check_writable(output_);
    StatusLine status = context.status_line();
    const auto progress = [&](const std::string& what) {
      status.show(what);
      context.detail(what);
    };
    const std::vector<std::string> words = run_words();
    ChildRecorder recorder(words, program_.is_script(), device_.starts_with("virtual"), progress);
    AdviceReport report{advise(recorder, request_, progress), *recorder.plain_trace()};
    status.wipe();
    const Way& way = report.advice.recommended();
    const std::string policy_file = output_.empty() ? "policy.json" : output_;
    report.expands_segments = way.configuration.expands_segments;
    report.run = words_of_way(words, way, policy_file);
    report.peak_flops = peak_flops();
    if (program_.is_script())
      report.notes.emplace_back(
          "checkpointing, layer slices and parameter offload change the program, so that they are compared "
          "for TorchScript modules only");
    if (way.policy != preset_policy("keep")) {
      if (output_.empty())
        report.notes.emplace_back("repeat this command with -o policy.json to write the policy");
      else
        write_policy(context, way, *recorder.plain_trace());
    }
    context.publish_beside(report, output_);
    return way.is_within ? ExitStatus::kOk : ExitStatus::kCheckFailed;
  }

 private:
  std::vector<std::string> run_words() const {
    std::vector<std::string> words = {"run"};
    for (const std::string& word : program_.words()) words.push_back(word);
    words.insert(words.end(), {"--device", device_});
    for (const std::string& input : inputs_) words.insert(words.end(), {"--input", input});
    if (!optimizer_.empty()) words.insert(words.end(), {"--optimizer", optimizer_});
    if (!program_.arguments().empty()) {
      words.emplace_back("--");
      std::ranges::copy(program_.arguments(), std::back_inserter(words));
    }
    return words;
  }

  void write_policy(Context& context, const Way& way, const Trace& plain) const {
    RunSettings settings = plain.settings;
    settings.checkpointed = way.configuration.checkpointed;
    settings.slices = way.configuration.slices;
    settings.parameters = way.configuration.parameters;
    context.print(format_policy_file({way.policy, way.metrics(), fingerprint_of_run(plain.model, settings),
                                      way.configuration.parameters}),
                  output_);
  }

  /// Returns the peak rate of the virtual GPU for bfloat16; 0: not known.
  double peak_flops() const {
    if (!device_.starts_with("virtual")) return 0;
    const std::size_t colon = device_.find(':');
    const DeviceProfile profile =
        load_profile(colon == std::string::npos ? kDefaultProfile : device_.substr(colon + 1));
    const auto found = profile.flops_per_second.find("bfloat16");
    return found == profile.flops_per_second.end() ? 0 : found->second;
  }

  ScriptOptions program_;
  AdviceRequest request_;
  std::vector<std::string> inputs_;
  std::string optimizer_, device_ = "virtual", output_;
};

}  // namespace

std::unique_ptr<Subcommand> make_advise_command() {
  return std::make_unique<AdviseCommand>();
}

}  // namespace offprof

// Trains models under many policies and compares each run with its simulation. The device peak, the memory of
// the caching allocator (if there is one), the host peak, the copied bytes and the command log must be equal.
// Gradients (if there are any) must be bitwise equal to those of plain autograd. The virtual GPU's clocks are
// deterministic, so there all times must be equal to the nanosecond, except under settings of TRL's rules
// that change the layout of tensors: PyTorch reads those in other kernels, and they must be equal to 0.1 %.
// Prints one row per model. The exit status is 1 if anything differs.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "cli/plugin/engine_loader.h"
#include "engine/devices/virtual_gpu/open.h"
#include "engine/models/inputs/input_spec.h"
#include "engine/models/zoo/catalog.h"
#include "simulator/replay/replay.h"
#include "simulator/steps/dense_reloads.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "traces/base/error.h"
#include "traces/io/file.h"
#include "validation/grid.h"

namespace offprof {
namespace {

struct Tally {
  std::string model;
  std::size_t settings = 0;
  /// Number of settings in which the figure is right.
  std::size_t peak = 0, cache = 0, host = 0, d2h = 0, h2d = 0, commands = 0, gradients = 0, times = 0;
  std::size_t times_known = 0;  ///< settings whose times must be right
  bool has_cache = false, has_gradients = false;
  Bytes keep_peak = 0, least_peak = 0;

  bool all_exact() const {
    return std::min({peak, cache, host, d2h, h2d, commands, gradients}) == settings && times == times_known;
  }
};

/// A virtual GPU computes no gradients.
bool has_right_gradients(const PolicyRun& run) {
  return run.gradients == "bitwise" || run.gradients == "not applicable";
}

/// Requirement on the predicted times of a setting.
enum class Times {
  kNothing,  ///< they are measured by real clocks
  kClose,    ///< some kernels read a tensor of another layout than in the recorded step
  kEqual
};

Times times_of(const Trace& trace, const TraceSteps& steps, const Policy& policy) {
  if (!trace.environment.times_are_modelled) return Times::kNothing;
  if (!traits_of(policy.scheduler).copies_tensors) return Times::kEqual;
  const auto reloaded = reloaded_tensors(steps.step(policy), policy);
  return changed_by_dense_copies(steps.program(policy), reloaded).empty() ? Times::kEqual : Times::kClose;
}

bool is_right(const MetricKey& key, const PolicyRun& run, const Metrics& predicted, Times times) {
  const auto measured_figure = key.get(run.measured), predicted_figure = key.get(predicted);
  if (key.unit == MetricUnit::kBytes) return !key.is_predicted || measured_figure == predicted_figure;
  if (key.unit != MetricUnit::kNanoseconds || times == Times::kNothing) return true;
  if (times == Times::kEqual) return measured_figure == predicted_figure;
  constexpr double kCloseShare = 0.001;
  return measured_figure && predicted_figure &&
         std::abs(*measured_figure - *predicted_figure) <= kCloseShare * *measured_figure;
}

bool has_right_times(const PolicyRun& run, const Metrics& predicted, Times times) {
  return std::ranges::all_of(metric_keys(), [&](const MetricKey& key) {
    return key.unit != MetricUnit::kNanoseconds || is_right(key, run, predicted, times);
  });
}

/// Prints the figures that differ.
void print_differences(const std::string& model, const PolicyRun& run, const Metrics& predicted,
                       Times times) {
  for (const MetricKey& key : metric_keys()) {
    if (!is_right(key, run, predicted, times))
      std::cout << fmt::format("{}, {}: {} measured {:.0f}, simulated {:.0f}\n", model, describe(run.policy),
                               key.name, key.get(run.measured).value_or(-1), key.get(predicted).value_or(-1));
  }
  if (!has_right_gradients(run))
    std::cout << fmt::format("{}, {}: gradients: {}\n", model, describe(run.policy), run.gradients);
}

void count(Tally& tally, const Trace& trace, const TraceSteps& steps, const PolicyRun& run) {
  const Step& step = steps.step(run.policy);
  const Metrics predicted = steps.predict(run.policy, trace.environment.link);
  const Times times = times_of(trace, steps, run.policy);
  const bool same_commands = replay_commands(step, run.policy) == run.commands;
  ++tally.settings;
  tally.peak += predicted.device_peak_bytes == run.measured.device_peak_bytes;
  tally.has_cache |= run.measured.device_reserved_peak_bytes.has_value();
  tally.has_gradients |= run.gradients != "not applicable";
  tally.cache += predicted.device_allocated_peak_bytes == run.measured.device_allocated_peak_bytes &&
                 predicted.device_reserved_peak_bytes == run.measured.device_reserved_peak_bytes;
  tally.host += predicted.host_peak_bytes == run.measured.host_peak_bytes;
  tally.d2h += predicted.d2h_bytes == run.measured.d2h_bytes;
  tally.h2d += predicted.h2d_bytes == run.measured.h2d_bytes;
  tally.commands += same_commands;
  tally.gradients += has_right_gradients(run);
  if (!same_commands)
    std::cout << fmt::format("{}: {}: the commands differ\n", tally.model, describe(run.policy));
  tally.times_known += times != Times::kNothing;
  tally.times += times != Times::kNothing && has_right_times(run, predicted, times);
  print_differences(tally.model, run, predicted, times);
}

/// Records the model, builds a grid of settings from its saved tensors, and compares each setting with its
/// run.
Tally validate(EnginePlugin& engine, const std::string& path, const std::string& device, GridSize size,
               int steps) {
  RunRequest request;
  request.model_path = path;
  request.device = device;
  request.calibration = CalibrationEffort::kBrief;  // times of a real device are not compared
  request.settings.steps = steps;  // the prediction of a caching allocator depends on the number of steps
  const std::string inputs = path.substr(0, path.rfind('.')) + ".inputs";
  if (std::ifstream(inputs)) request.settings.inputs = split_input_specs(read_file(inputs));
  const auto silent = [](const std::string&) {};

  const ComparisonResult recording = engine.compare(request, {}, silent);
  Comparison comparison;
  for (const Policy& policy : validation_grid(Step(recording.trace.program), size))
    comparison.policies.push_back({policy, /*timed_steps=*/steps - 1});
  const ComparisonResult result = engine.compare(request, comparison, silent);
  const TraceSteps traced(result.trace);
  Tally tally;
  tally.model = result.trace.model.name;
  for (const PolicyRun& run : result.runs) {
    count(tally, result.trace, traced, run);
    const Bytes peak = *run.measured.device_peak_bytes;
    tally.keep_peak = std::max(tally.keep_peak, peak);
    tally.least_peak = tally.least_peak == 0 ? peak : std::min(tally.least_peak, peak);
  }
  return tally;
}

std::vector<std::string> zoo_paths(EnginePlugin& engine, const std::string& folder) {
  std::vector<std::string> paths;
  for (const ZooModel& model : zoo_models()) {
    paths.push_back(folder + "/" + model.name + ".pt");
    engine.make_zoo_model(model.name, {}, 0, paths.back(), {});
  }
  return paths;
}

/// Opens the virtual GPU with its stream race checker if `device` is one; else returns nullptr.
VirtualGpu* open_device(std::string& device) {
  if (!device.starts_with("virtual")) return nullptr;
  VirtualGpuOptions options;
  options.profile = load_profile(device.substr(device.find(':') + 1));
  options.checks_streams = true;
  return &open_virtual_gpu((std::filesystem::path(program_folder()) / "virtual_gpu").string(),
                           std::move(options));
}

bool streams_in_order(VirtualGpu* gpu) {
  if (gpu == nullptr) return true;
  const std::vector<StreamHazard> hazards = gpu->take_hazards();
  for (const StreamHazard& hazard : hazards)
    std::cout << fmt::format("race: {}: {}, then {}\n", hazard.what, hazard.first, hazard.second);
  return hazards.empty();
}

int run(std::vector<std::string> models, const std::string& zoo_folder, std::string device, GridSize size,
        int steps) {
  VirtualGpu* gpu = open_device(device);
  EnginePlugin& engine = load_engine();
  if (!zoo_folder.empty()) {
    const std::vector<std::string> zoo = zoo_paths(engine, zoo_folder);
    models.insert(models.end(), zoo.begin(), zoo.end());
  }
  std::cout
      << "Settings whose simulation equals the run (peaks and copied bytes exact to the byte, commands line "
         "by line):\n\n"
         "| model | settings | device peak | allocated and reserved | host peak | D2H bytes | H2D bytes | "
         "commands | gradients bitwise | times as they must be | highest peak | lowest peak |\n"
         "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  bool all_exact = true;
  for (const std::string& path : models) {
    const Tally t = validate(engine, path, device, size, steps);
    const bool is_in_order = streams_in_order(gpu);
    all_exact &= t.all_exact() && is_in_order;
    const auto if_any = [](bool has, std::size_t holds) { return has ? std::to_string(holds) : "none"; };
    std::cout << fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", t.model,
                             t.settings, t.peak, if_any(t.has_cache, t.cache), t.host, t.d2h, t.h2d,
                             t.commands, if_any(t.has_gradients, t.gradients),
                             if_any(t.times_known > 0, t.times), format_bytes(t.keep_peak),
                             format_bytes(t.least_peak))
              << std::flush;
  }
  std::cout << (all_exact ? "\nEverything is exact.\n" : "\nNOT everything is exact.\n");
  return all_exact ? 0 : 1;
}

}  // namespace
}  // namespace offprof

int main(int argc, char** argv) {
  CLI::App app("Compares real runs with their simulation, over a grid of policies");
  std::vector<std::string> models;
  std::string zoo_folder;
  bool full = false;
  int steps = 2;
  std::string device = "host";
  app.add_option("MODEL.pt", models,
                 "Models; the input specs of MODEL.pt may be in MODEL.inputs in the same folder");
  app.add_option("--zoo", zoo_folder, "Create every model of the zoo in this folder, and validate them too");
  app.add_option("--device", device, "host, or virtual:PROFILE with its stream race checker");
  app.add_flag("--full", full, "The full grid instead of a cross-section");
  app.add_option("--steps", steps, "Steps per setting, in sequence; the first is not timed")
      ->check(CLI::Range(2, 100));
  CLI11_PARSE(app, argc, argv);
  try {
    return offprof::run(models, zoo_folder, device,
                        full ? offprof::GridSize::kFull : offprof::GridSize::kCrossSection, steps);
  } catch (const offprof::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  }
}

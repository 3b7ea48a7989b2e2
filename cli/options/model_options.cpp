#include "cli/options/model_options.h"

#include "cli/options/options.h"
#include "traces/base/error.h"

namespace offprof {

void ModelOptions::add_slices_to(CLI::App& app) {
  add_count_or_auto_option(
      app, "--slices", [this](auto count) { slices_.emplace().count = count; }, 1, kMostSlices,
      "Run the model in N layer slices of similar size (auto: choose N), one after another; each is "
      "recomputed in backward, and its parameters are on the host until it runs (default: none)");
  add_count_option(app, "--microbatches", microbatches_, 1, kMostSlices,
                   "With --slices: split the batch into N micro-batches, which each slice runs in turn "
                   "(default 1)");
}

void ModelOptions::add_parameters_to(CLI::App& app) {
  add_choice_option<std::optional<std::string>>(
      app, "--offload-params", place_, {{"none", "none"}, {"host", "host"}, {"disk", "disk"}},
      "Keep parameters, their gradients and the optimizer state on the host or on the disk except while "
      "they are used (default: none; with --slices host)");
  add_capacity_option(
      app, "--offload-params-window", window_,
      "Limit of offloaded parameters on the device, unless one operator needs more (default: twice the "
      "parameters of the largest operator; with --slices: of two slices)",
      0);
  app.add_option("--offload-params-dir", folder_,
                 "With --offload-params disk: folder for the file of parameters; on a GPU they share the "
                 "disk of --disk")
      ->type_name("DIR");
}

void ModelOptions::set(RunRequest& request) const {
  request.settings.parameters = parameters();
  request.settings.slices = slices(request.settings);
  request.parameters_folder = folder_;
}

std::optional<SliceSettings> ModelOptions::slices(const RunSettings& settings) const {
  if (!slices_ && microbatches_)
    throw input_error("--microbatches needs --slices",
                      "Add --slices 1 to run micro-batches of the whole model.");
  if (!slices_) return std::nullopt;
  if (!settings.checkpointed.empty())
    throw input_error("--slices and --checkpoint both recompute parts of the model: give only one of them");
  return SliceSettings{slices_->count, microbatches_.value_or(1)};
}

std::optional<ParameterSettings> ModelOptions::parameters() const {
  const std::string place = place_.value_or(slices_ ? "host" : "none");
  if (place != "disk" && !folder_.empty())
    throw input_error("--offload-params-dir needs --offload-params disk");
  if (place == "none" && window_)
    throw input_error("--offload-params-window needs --offload-params host or disk");
  if (place == "none") return std::nullopt;
  return ParameterSettings{place, window_};
}

}  // namespace offprof

#include "profiler/session/loaded_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include <algorithm>

#include "engine/checkpointing/checkpointed_modules.h"
#include "engine/models/meta_parameters.h"
#include "engine/models/model_checkpoint.h"
#include "engine/models/model_device.h"
#include "engine/slices/microbatches.h"
#include "profiler/stages/measure_policy.h"
#include "profiler/stages/record_run.h"
#include "traces/base/check.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Size of the parameter window in multiples of what an operator needs at once, or a layer slice, so that the
/// next parameters can be loaded while one of them runs.
constexpr Bytes kWindowInOperators = 2;

/// Disables graph optimisation. Otherwise the graph executor fuses operators into subgraphs from the second
/// step on, and those unpack all their saved tensors at once.
void turn_graph_optimisation_off() {
  torch::jit::setGraphExecutorOptimize(false);
  torch::jit::getProfilingMode() = false;
}

class Loader {
 public:
  Loader(const RunRequest& request, Device& device, const Progress& progress, LoadedModel& loaded)
      : request_(request),
        device_(device),
        progress_(progress),
        model_(loaded.model),
        offloader_(loaded.offloader),
        trace_(loaded.trace) {}

  void load() {
    progress_("loading the model");
    const auto used_before = device_.used_beside_allocator();
    turn_graph_optimisation_off();
    device_.prepare_cores(request_.threads);
    at::set_num_threads(request_.threads);
    trace_.settings = request_.settings;
    model_ = load_model(request_.model_path);
    open_checkpoint();
    make_inputs_as_asked();
    if (!device_.is_virtual() && !checkpoint_) refuse_meta_parameters(model_);
    place_model();
    choose_checkpointed();
    cut_into_slices();
    trace_.model = model_.info;
    trace_.policy = policy_beforehand(request_, trace_);
    note_environment();
    if (used_before) trace_.environment.beside_allocator = {*used_before, *used_before, *used_before};
  }

 private:
  void open_checkpoint() {
    const std::string& path = trace_.settings.loaded_from;
    if (path.empty()) return;
    checkpoint_.emplace(path, model_);
    if (std::string note = checkpoint_->note(); !note.empty()) trace_.notes.push_back(std::move(note));
  }

  void make_inputs_as_asked() {
    std::vector<std::string>& inputs = trace_.settings.inputs;
    if (inputs.empty()) inputs = input_specs_in_archive(request_.model_path);
    if (inputs.empty())
      throw input_error(
          model_.info.name + ": the archive does not describe the model's inputs",
          "give one --input for each, such as --input 'int64[4,128]<512' or --input 'float32[8,3,64,64]'");
    at::manual_seed(trace_.settings.seed);
    make_inputs(model_, inputs);
  }

  void note_environment() {
    trace_.environment = environment_of(request_, device_);
    if (DeviceDisk* const disk = device_.disk(); disk != nullptr && !disk->warning().empty())
      trace_.notes.push_back(disk->warning());
  }

  /// Moves the model to the device, and offloaded parameters from there to their place.
  void place_model() {
    make_offloader();
    const auto adopt = [&](const at::Tensor& parameter) {
      if (offloader_) offloader_->adopt_parameter(parameter);
    };
    const auto value_of = [&](const at::Tensor& own) {
      return checkpoint_ ? checkpoint_->value_of(own) : own;
    };
    if (!device_.torch_device().is_cpu())
      return move_to_device(model_, device_.torch_device(), adopt, value_of);
    std::vector<at::Tensor> in_memory;
    for (const at::Tensor& parameter : model_.module.parameters())
      if (!stays_in_file(parameter)) in_memory.push_back(parameter);
    // Reads all values first: some may share a storage, whose memory may be freed once it is adopted.
    if (checkpoint_) {
      for (const at::Tensor& parameter : in_memory) checkpoint_->read_into(parameter);
      for (const at::Tensor& buffer : model_.module.buffers()) checkpoint_->read_into(buffer);
    }
    for (const at::Tensor& parameter : in_memory) adopt(parameter);
  }

  /// Offloads the parameter without reading its value, if its place can load it from the checkpoint later and
  /// no other tensor shares its storage.
  bool stays_in_file(const at::Tensor& parameter) {
    if (!checkpoint_ || !offloader_) return false;
    ModelCheckpoint::make_room(parameter);
    if (offloader_->is_parameter_group(parameter.storage())) return true;  // the module has it twice
    const auto range = checkpoint_->range_of(parameter);
    return range && parameter.storage().use_count() == 1 &&
           offloader_->adopt_parameter_in_file(parameter, *range);
  }

  void make_offloader() {
    const std::optional<ParameterSettings>& parameters = trace_.settings.parameters;
    if (!parameters) return;
    const bool on_disk = parameters->place == "disk";
    std::unique_ptr<ParameterStore> store;
    if (!on_disk) {
      store = make_host_parameter_store(device_);
    } else if (device_.torch_device().is_cpu()) {
      store = make_disk_parameter_store(request_.parameters_folder);
    } else {
      OFFPROF_CHECK(device_.disk() != nullptr);
      store = make_device_disk_parameter_store(device_);
    }
    if (const std::string warning = store->warning(); !warning.empty()) trace_.notes.push_back(warning);
    // learn_uses sets the window after the first steps: with a given window they would leave the memory that
    // they allocate in other places than with one that is chosen, and a trace of one run would not predict
    // the other.
    offloader_.emplace(device_, std::move(store), 0);
  }

  void choose_checkpointed() {
    const std::vector<std::string>& patterns = trace_.settings.checkpointed;
    if (!patterns.empty())
      model_.checkpointed =
          std::make_shared<CheckpointedModules>(model_.module, patterns, device_.torch_device());
  }

  /// Runs the model once to measure its parts, and cuts it.
  void cut_into_slices() {
    std::optional<SliceSettings>& settings = trace_.settings.slices;
    if (!settings) return;
    progress_("cutting the model into slices");
    model_.microbatches = settings->microbatches;
    const auto microbatches = cut_into_microbatches(model_.inputs, model_.microbatches);
    const ParameterOffloader::Scope offloading(offloader_ ? &*offloader_ : nullptr);
    try {
      model_.slices = std::make_shared<LayerSlices>(model_.module, microbatches.front(), settings->count,
                                                    device_.torch_device());
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw forward_error(model_, microbatches.front(), error);
    }
    settings->count = static_cast<std::int64_t>(model_.slices->slices().size());
  }

  const RunRequest& request_;
  std::optional<ModelCheckpoint> checkpoint_{};
  Device& device_;
  const Progress& progress_;
  Model& model_;
  std::optional<ParameterOffloader>& offloader_;
  Trace& trace_;
};

/// Learns the order in which a step uses the parameters, and chooses the window size.
void learn_uses(LoadedModel& loaded, Trainer& trainer, const Progress& progress) {
  if (!loaded.offloader) return;
  progress("recording the order of parameter uses");
  trainer.plain_step();  // creates the optimizer's state
  trainer.plain_step();
  loaded.offloader->learn();
  std::optional<Bytes>& window = loaded.trace.settings.parameters->window_bytes;
  const Bytes slice_bytes = loaded.model.slices ? loaded.model.slices->most_weight_bytes() : 0;
  if (!window) window = kWindowInOperators * std::max(loaded.offloader->most_used_bytes(), slice_bytes);
  loaded.offloader->set_window_bytes(*window);
}

/// Reports checkpointed modules that the last step did not call: they save no memory.
void check_checkpointed(LoadedModel& loaded) {
  const Model& model = loaded.model;
  if (!model.checkpointed) return;
  const std::vector<std::string> uncalled = model.checkpointed->uncalled();
  if (uncalled.empty()) return;
  if (uncalled.size() == model.checkpointed->paths().size())
    throw input_error(
        fmt::format("checkpoint: the model's forward calls none of {}", fmt::join(uncalled, ", ")),
        "the export inlined their code: export the model without torch.jit.freeze and without "
        "inlining");
  loaded.trace.notes.push_back(
      fmt::format("checkpointed modules that the step does not call: {}", fmt::join(uncalled, ", ")));
}

}  // namespace

std::unique_ptr<LoadedModel> load_for(const RunRequest& request, Device& device, const Progress& progress) {
  auto loaded = std::make_unique<LoadedModel>(device);
  Loader(request, device, progress, *loaded).load();
  return loaded;
}

void warm_up(LoadedModel& loaded, Trainer& trainer, Device& device, const Progress& progress) {
  learn_uses(loaded, trainer, progress);
  progress("warming up");
  for (int i = 0; i < loaded.trace.settings.warmup; ++i) trainer.plain_step();
  check_checkpointed(loaded);
  loaded.trace.model.optimizer = trainer.optimizer_memory();
  if (auto& memory = loaded.trace.environment.beside_allocator)
    memory->warm_bytes = *device.used_beside_allocator();
}

}  // namespace offprof

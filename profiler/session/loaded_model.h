#pragma once

#include <memory>
#include <optional>

#include "engine/devices/device.h"
#include "engine/devices/host_memory.h"
#include "engine/models/model.h"
#include "engine/parameters/parameter_offloader.h"
#include "profiler/plugin/plugin.h"
#include "profiler/training/trainer.h"
#include "traces/model/trace.h"

namespace offprof {

/// A model on its device, ready for training steps.
struct LoadedModel {
  explicit LoadedModel(Device& device) : idle_at_end(device) {}

  Model model;
  std::optional<ParameterOffloader> offloader;  ///< nullopt: the parameters stay on the device
  /// The model, its settings and environment, the policy to run, and notes. Nothing is recorded yet.
  Trace trace;
  /// Waits at the end, since parameters may still be copied to memory that is freed with the model.
  IdleAtEnd idle_at_end;
};

/// Loads the model, makes its inputs, and places it on the device with its activation checkpointing and layer
/// slices. `device` must outlive the result. Throws Error (input) if the request does not fit the model.
std::unique_ptr<LoadedModel> load_for(const RunRequest& request, Device& device, const Progress& progress);

/// Trains the warm-up steps, and records the order in which they use parameters. Throws Error (input) if
/// the steps call none of the checkpointed modules.
void warm_up(LoadedModel& loaded, Trainer& trainer, Device& device, const Progress& progress);

}  // namespace offprof

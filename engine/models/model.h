#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "engine/autograd/residents.h"
#include "engine/checkpointing/checkpointed_modules.h"
#include "engine/devices/device.h"
#include "engine/slices/layer_slices.h"
#include "traces/base/error.h"
#include "traces/model/trace.h"

namespace offprof {

/// A TorchScript module, ready to be trained on the CPU, with inputs.
struct Model {
  torch::jit::Module module;
  std::vector<at::Tensor> parameters;        ///< the trained ones
  std::vector<std::string> parameter_names;  ///< of `parameters`
  std::vector<c10::IValue> inputs;
  ModelInfo info;
  std::shared_ptr<CheckpointedModules> checkpointed{};  ///< for activation checkpointing; null: none
  std::shared_ptr<LayerSlices> slices{};                ///< layer slices; null: none
  std::int64_t microbatches = 1;                        ///< per step, if there are layer slices

  /// Returns the device of the parameters.
  c10::Device device() const { return parameters.at(0).device(); }
};

/// Loads `model.pt` in training mode. The archive says which parameters are trained; if it trains none (it
/// was exported for inference), all floating-point ones are.
///
/// Throws Error (input) if the file does not exist, if it is not a TorchScript archive (an eager checkpoint,
/// a state dict, a `.pt2`, a truncated or foreign file; the error names the kind and how to export), or if
/// the module has no parameters to train.
Model load_model(const std::string& path);

/// Returns the input specs inside the archive (its extra file `offprof.inputs`), one per line; empty if there
/// are none.
std::vector<std::string> input_specs_in_archive(const std::string& path);

/// Makes the inputs by their specs, with the generator's current seed, and checks their number against
/// forward's schema. Throws Error (input).
void make_inputs(Model& model, const std::vector<std::string>& specs);

/// Returns the tensors that are never moved: the model's parameters, buffers and inputs.
Residents residents_of(const Model& model, const DeviceAllocator& allocator);

/// Runs forward. Throws Error (input) with LibTorch's reason in one line if it fails. The reason can be a
/// lack of device memory, which Device::take_out_of_memory reports.
c10::IValue run_forward(Model& model, const std::vector<c10::IValue>& inputs);

/// Converts an exception of a part of forward, which is not an Error, to the Error that run_forward throws.
Error forward_error(const Model& model, const std::vector<c10::IValue>& inputs, const std::exception& error);

/// Returns the loss that backward starts from. `auto`: a scalar floating-point output is the loss; otherwise,
/// and for `mean`, the mean of squares of the first floating-point tensor in the output (tensor, tuple, list,
/// dict) that requires a gradient; `sum`: its sum of squares. Throws Error (input) if there is no such
/// tensor.
at::Tensor loss_of(const c10::IValue& output, const std::string& loss);

}  // namespace offprof

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/modules/segments.h"
#include "engine/offload_step.h"
#include "engine/shards/shards.h"
#include "traces/error.h"
#include "traces/trace.h"

namespace offprof {

/// A TorchScript module ready to be trained on the CPU, with inputs.
struct Model {
  torch::jit::Module module;
  std::vector<at::Tensor> parameters;        ///< those that are trained
  std::vector<std::string> parameter_names;  ///< of the same
  std::vector<c10::IValue> inputs;
  ModelInfo info;
  std::shared_ptr<Segments> segments{};  ///< null: there are none
  std::shared_ptr<Shards> shards{};      ///< likewise
  std::int64_t microbatches = 1;         ///< that a step has, where there are shards

  /// That its parameters lie on.
  c10::Device device() const { return parameters.at(0).device(); }
};

/// Loads `model.pt`, in training mode. Parameters are trained as the archive says; where it trains none (an
/// archive exported for inference), all floating-point ones are.
///
/// Throws Error (input): no such file, not a TorchScript archive (an eager checkpoint, a state dict, a
/// `.pt2`, a truncated or foreign file: what it is and how to export is said), a module without parameters to
/// train.
Model load_model(const std::string& path);

/// The input specs inside the archive (its extra file `offprof.inputs`), one a line; empty where there are
/// none.
std::vector<std::string> input_specs_in_archive(const std::string& path);

/// Makes the inputs after their specs, with the generator's current seed, and checks their count against
/// forward's schema. Throws Error (input).
void make_inputs(Model& model, const std::vector<std::string>& specs);

/// What never moves: the model's parameters, buffers, and inputs.
Residents residents_of(const Model& model, const Device& device);

/// Runs forward. Throws Error (input) with LibTorch's reason in one line where it does not succeed. That may
/// be for lack of device memory too, which the device knows: see Device::take_out_of_memory.
c10::IValue run_forward(Model& model, const std::vector<c10::IValue>& inputs);

/// What a part of forward threw, which is not an Error, as run_forward says it.
Error forward_error(const Model& model, const std::vector<c10::IValue>& inputs, const std::exception& error);

/// What backward starts from. `auto`: a scalar floating-point output is the loss; else, and for `mean`, the
/// mean of squares of the first floating-point tensor that requires a gradient in the output (tensor, tuple,
/// list, dict); `sum`: the sum of squares. Throws Error (input) where there is none.
at::Tensor loss_of(const c10::IValue& output, const std::string& loss);

}  // namespace offprof

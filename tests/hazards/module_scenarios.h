#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/api/module.h>

#include <vector>

#include "engine/slices/sliced_pass.h"
#include "tests/hazards/scenarios.h"

namespace offprof {

/// Returns a model of (x, w). Its two submodules draw random numbers, count their batches in a buffer
/// `count`, and return two tensors that need gradients and one that does not. The model returns a number.
torch::jit::Module model_for_checkpointing(c10::Device device);

/// Returns a model of (x, w) in which values cross the cuts in several ways, and `w` is used everywhere. The
/// model returns a number.
torch::jit::Module model_for_slices(c10::Device device);

/// Returns the inputs of each micro-batch, which are views of the graph's leaves.
std::vector<std::vector<c10::IValue>> microbatches_of(const Graph& g, int count);

/// Cuts model_for_slices into layer slices, outside any step: a model is cut before its first step. `model`
/// must outlive the slices.
LayerSlices cut_for(const torch::jit::Module& model, const Graph& g, int microbatches);

/// Returns the model's output for each micro-batch.
std::vector<Tensor> run_forward(SlicedPass& pass);

/// Returns scenarios of models with activation checkpointing and in layer slices.
std::vector<Scenario> module_scenarios();

}  // namespace offprof

#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/api/module.h>

#include <vector>

#include "engine/shards/sharded_pass.h"
#include "tests/hazards/scenarios.h"

namespace offprof {

/// A model of (x, w) whose two submodules draw random numbers, count their batches in a buffer `count`, and
/// hand out two tensors that need gradients and one that does not. Gives a number.
torch::jit::Module model_for_segments(c10::Device device);

/// A model of (x, w) across whose cuts values go in several ways; `w` is used everywhere. Gives a number.
torch::jit::Module model_for_shards(c10::Device device);

/// The inputs of each micro-batch, views of the graph's leaves.
std::vector<std::vector<c10::IValue>> microbatches_of(const Graph& g, int count);

/// Of model_for_shards, outside any step: a model is cut before one begins. `model` must outlive them.
Shards cut_for(const torch::jit::Module& model, const Graph& g, int microbatches);

/// What the model gives for each micro-batch.
std::vector<Tensor> run_forward(ShardedPass& pass);

/// Models in segments and in shards.
std::vector<Scenario> module_scenarios();

}  // namespace offprof

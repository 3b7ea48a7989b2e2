#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpointing/checkpointed_call.h"
#include "engine/slices/forward_graph.h"
#include "engine/slices/plan/slice_plan.h"
#include "traces/base/units.h"

namespace offprof {

/// A model's forward, cut into layer slices of similar size that run one after another. Each saves only its
/// inputs, and runs again in backward (SlicedPass).
class LayerSlices {
 public:
  using ValueId = ForwardGraph::ValueId;

  struct Slice {
    std::unique_ptr<torch::jit::GraphFunction> function;
    CheckpointedModule module;
    std::vector<ValueId> inputs;           ///< see ForwardGraph::Part
    std::vector<ValueId> outputs;          ///< see ForwardGraph::Part
    std::vector<ValueId> last_uses;        ///< the `inputs` that no later slice takes
    std::vector<at::Tensor> parameters{};  ///< the parameters that it uses, once each
    /// A parameter that other slices use too. `is_first`: no earlier slice uses it.
    struct SharedParameter {
      at::Tensor weight;
      bool is_first = false;
    };
    std::vector<SharedParameter> shared{};
  };

  /// Runs forward once, on `inputs`, to measure its pieces; its effects on buffers and random numbers are
  /// undone. `count` nullopt: chosen by plan_slices. The model must outlive this object, and be on `device`.
  ///
  /// Throws Error (input) if there are fewer pieces than `count`, or if a method of the model enables
  /// autocast. Exceptions of forward are passed on.
  LayerSlices(const torch::jit::Module& model, const std::vector<c10::IValue>& inputs,
              std::optional<std::int64_t> count, c10::Device device);

  const torch::jit::Module& model() const { return model_; }
  const std::vector<Slice>& slices() const { return slices_; }
  std::size_t values() const { return values_; }
  ValueId result() const { return result_; }
  c10::Device device() const { return device_; }
  /// Returns the largest total of a slice's parameters.
  Bytes most_weight_bytes() const;

 private:
  void build(const ForwardGraph& forward, const PieceCosts& costs, std::optional<std::int64_t> count);
  void add(ForwardGraph::Part part, const std::string& first_name, const std::string& last_name);
  void find_last_uses();
  void find_shared_parameters();

  torch::jit::Module model_;
  c10::Device device_;
  std::size_t values_ = 0;
  ValueId result_ = 0;
  std::vector<Slice> slices_;
};

/// Measures the pieces of a forward by running it once on `inputs`.
PieceCosts measure_pieces(const ForwardGraph& forward, const torch::jit::Module& model,
                          const std::vector<c10::IValue>& inputs, c10::Device device);

/// Returns the tensors among the attributes and the parameters of the modules among them, once each.
std::vector<at::Tensor> parameters_in(const std::vector<c10::IValue>& attributes);

}  // namespace offprof

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

#include "engine/modules/segment_run.h"
#include "engine/shards/forward_graph.h"
#include "engine/shards/shard_plan.h"
#include "traces/units.h"

namespace offprof {

/// A model's forward, cut into parts of like size that run one after another, each without saving anything
/// but what comes into it, and again in backward (ShardedPass).
class Shards {
 public:
  using ValueId = ForwardGraph::ValueId;

  struct Shard {
    std::unique_ptr<torch::jit::GraphFunction> function;
    SegmentModule module;
    std::vector<ValueId> inputs;        ///< ForwardGraph::Part
    std::vector<ValueId> outputs;       ///< likewise
    std::vector<ValueId> last_uses;     ///< those of `inputs` that no later shard takes
    std::vector<at::Tensor> weights{};  ///< the parameters that it uses, once each
    /// Those of them that other shards use too; `is_first`: none before this one does.
    struct SharedWeight {
      at::Tensor weight;
      bool is_first = false;
    };
    std::vector<SharedWeight> shared{};
  };

  /// Runs forward once, on `inputs`, to see what its parts take; what that does to buffers and random numbers
  /// is undone. `count` nullopt: as many as suit (plan_shards). The model must outlive it, and lie on
  /// `device`.
  ///
  /// Throws Error (input): there are fewer parts than `count`; a method of the model switches autocast on.
  /// Forward throws as it does.
  Shards(const torch::jit::Module& model, const std::vector<c10::IValue>& inputs,
         std::optional<std::int64_t> count, c10::Device device);

  const torch::jit::Module& model() const { return model_; }
  const std::vector<Shard>& shards() const { return shards_; }
  std::size_t values() const { return values_; }
  ValueId result() const { return result_; }
  c10::Device device() const { return device_; }
  /// The weights of the shard that has most of them.
  Bytes most_weight_bytes() const;

 private:
  void build(const ForwardGraph& forward, const PieceCosts& costs, std::optional<std::int64_t> count);
  void add(ForwardGraph::Part part, const std::string& first_name, const std::string& last_name);
  void find_last_uses();
  void find_shared_weights();

  torch::jit::Module model_;
  c10::Device device_;
  std::size_t values_ = 0;
  ValueId result_ = 0;
  std::vector<Shard> shards_;
};

/// What the pieces of a forward take, seen by running it once on `inputs`.
PieceCosts measure_pieces(const ForwardGraph& forward, const torch::jit::Module& model,
                          const std::vector<c10::IValue>& inputs, c10::Device device);

/// Tensors among the attributes, and parameters inside those that are modules, once each.
std::vector<at::Tensor> weights_in(const std::vector<c10::IValue>& attributes);

}  // namespace offprof

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/shards/boundary.h"
#include "engine/shards/microbatches.h"
#include "engine/shards/shards.h"
#include "engine/weights/weight_pager.h"

namespace offprof {

/// A forward and a backward in shards: each shard runs all micro-batches before the next one does, in forward
/// as in backward, so that its weights need to be there twice only, however many micro-batches there are.
/// What other micro-batches have ready for the next shard meanwhile is off the device where weights are.
///
/// Gradients are bitwise those of the whole model on one micro-batch after another, where those draw the same
/// random numbers (MicrobatchRandom): each shard goes backward by itself, from what came back through the
/// shards after it, and adds up gradients in the order in which autograd does that over the whole graph.
class ShardedPass {
 public:
  /// `shards` must outlive it, and so must the WeightPager::Scope in which it is made, if there is one.
  /// `microbatches`: the inputs of each.
  ShardedPass(const Shards& shards, std::vector<std::vector<c10::IValue>> microbatches);

  /// What the model's forward returns, by micro-batch, each with a graph of its own to its results. Once.
  /// Throws as forward does, and what SegmentRun throws.
  std::vector<c10::IValue> forward();
  /// From one scalar loss for each, made of what `forward` returned. Once.
  void backward(const std::vector<at::Tensor>& losses);

 private:
  using ValueId = Shards::ValueId;
  using Shard = Shards::Shard;

  /// What a part made, or an argument.
  struct Value {
    c10::IValue value;
    /// By tensor in it: where its gradient goes; none where it needs none.
    std::vector<torch::autograd::Edge> edges;
    std::vector<at::Tensor> gradients;  ///< of the same, so far; undefined: none yet
  };
  struct Entry {
    ValueId value = 0;
    std::size_t tensor = 0;
  };
  /// One part, of one micro-batch.
  struct Call {
    std::shared_ptr<Boundary> boundary;
    std::vector<Entry> entered;  ///< by the boundary's inputs
    /// Of what it takes, those that are the pager's: some policies let go of them before autograd does, and
    /// when they go must not depend on that.
    std::vector<c10::Storage> pages{};
  };
  struct Microbatch {
    std::vector<Value> values;
    std::vector<Call> calls{};  ///< by shard; then that of the loss
    /// Of weights that several shards use, by weight, what the later of them gave.
    std::unordered_map<const c10::TensorImpl*, at::Tensor> shared_gradients{};
  };
  struct Roots {
    torch::autograd::edge_list edges;
    std::vector<at::Tensor> gradients;
    void add(torch::autograd::Edge edge, at::Tensor gradient);
  };
  class SharedWeightScope;

  void run(const Shard& shard, Microbatch& microbatch);
  c10::IValue enter(ValueId id, Microbatch& microbatch, Call& call) const;
  void hold(Value& value, c10::IValue made) const;
  void go_back(const Shard& shard, Microbatch& microbatch);
  static void add_roots(Value& value, Roots& roots);
  static void go_back(const Roots& roots);
  void add_left_over(Microbatch& microbatch) const;
  void take_gradients(Call call, Microbatch& microbatch) const;
  void let_wait(const at::Tensor& value) const;
  bool is_waiting(const at::Tensor& value) const;

  const Shards& shards_;
  WeightPager* pager_;  ///< nullptr: nothing waits, or on the device
  AllocationId first_allocation_ = 0;
  std::size_t arguments_ = 0;  ///< values from 0 upwards that are the model's
  MicrobatchRandom random_;
  std::vector<Microbatch> microbatches_;
};

}  // namespace offprof

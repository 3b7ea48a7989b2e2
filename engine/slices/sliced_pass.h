#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/parameters/parameter_offloader.h"
#include "engine/slices/boundary.h"
#include "engine/slices/layer_slices.h"
#include "engine/slices/microbatches.h"

namespace offprof {

/// A forward and a backward in layer slices. Each slice runs all micro-batches before the next slice does, in
/// forward and in backward, so its parameters must be loaded only twice, however many micro-batches there
/// are. With parameter offload, the values that other micro-batches hold for the next slice are offloaded
/// meanwhile.
///
/// Gradients are bitwise those of the whole model on one micro-batch after another with the same random
/// numbers (MicrobatchRandom): each slice runs backward by itself, from the gradients that later slices
/// returned, and adds up gradients in the order of autograd's backward over the whole graph.
class SlicedPass {
 public:
  /// `slices` must outlive this object, and so must the ParameterOffloader::Scope in which it is made, if
  /// there is one. `microbatches`: the inputs of each.
  SlicedPass(const LayerSlices& slices, std::vector<std::vector<c10::IValue>> microbatches);

  /// Returns the results of the model's forward, by micro-batch, each with a graph of its own. Call once.
  /// Throws the exceptions of forward and of CheckpointedCall.
  std::vector<c10::IValue> forward();
  /// Starts from one scalar loss per micro-batch, computed from the results of `forward`. Call once.
  void backward(const std::vector<at::Tensor>& losses);

 private:
  using ValueId = LayerSlices::ValueId;
  using Slice = LayerSlices::Slice;

  /// An argument, or a result of a slice.
  struct Value {
    c10::IValue value;
    /// Gradient edge of each tensor in it; none if it needs no gradient.
    std::vector<torch::autograd::Edge> edges;
    std::vector<at::Tensor> gradients;  ///< of the same tensors, so far; undefined: none yet
  };
  struct Entry {
    ValueId value = 0;
    std::size_t tensor = 0;
  };
  /// One call of a slice, for one micro-batch.
  struct Call {
    NodePointerTo<Boundary> boundary;
    std::vector<Entry> entered;  ///< by input of the boundary
    /// The inputs' storages that the offloader manages. Some policies release them before autograd does;
    /// holding them here makes their lifetime independent of the policy.
    std::vector<c10::Storage> groups{};
  };
  struct Microbatch {
    std::vector<Value> values;
    std::vector<Call> calls{};  ///< by slice; then the call of the loss
    /// Gradients from later slices, by parameter shared between slices.
    std::unordered_map<const c10::TensorImpl*, at::Tensor> shared_gradients{};
  };
  struct Roots {
    torch::autograd::edge_list edges;
    std::vector<at::Tensor> gradients;
    void add(torch::autograd::Edge edge, at::Tensor gradient);
  };
  class SharedParameterScope;

  void run(const Slice& slice, Microbatch& microbatch);
  c10::IValue enter(ValueId id, Microbatch& microbatch, Call& call) const;
  void hold(Value& value, c10::IValue made) const;
  void go_back(const Slice& slice, Microbatch& microbatch);
  static void add_roots(Value& value, Roots& roots);
  static void go_back(const Roots& roots);
  void add_left_over(Microbatch& microbatch) const;
  void take_gradients(Call call, Microbatch& microbatch) const;
  void let_wait(const at::Tensor& value) const;
  bool is_waiting(const at::Tensor& value) const;

  const LayerSlices& slices_;
  ParameterOffloader* offloader_;  ///< nullptr: values between slices stay on the device
  AllocationId first_allocation_ = 0;
  std::size_t arguments_ = 0;  ///< the first values, which are the model's arguments
  MicrobatchRandom random_;
  std::vector<Microbatch> microbatches_;
};

}  // namespace offprof

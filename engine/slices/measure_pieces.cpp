#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/autograd/autograd_engine.h"
#include "engine/recompute/recompute.h"
#include "engine/slices/layer_slices.h"
#include "engine/torch/ivalue_tensors.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

using Storages = std::set<const c10::StorageImpl*>;

/// Counts the bytes of storages, each once, without those in `seen`.
class ByteCount {
 public:
  explicit ByteCount(Storages seen) : seen_(std::move(seen)) {}

  void add(const at::Tensor& value) {
    if (!value.defined() || !value.has_storage()) return;
    if (!seen_.insert(value.storage().unsafeGetStorageImpl()).second) return;
    known_.push_back(value.storage().getWeakStorageImpl());
    bytes_ += static_cast<Bytes>(value.storage().nbytes());
  }
  void add(const c10::IValue& value) {
    with_tensors_replaced(value, [&](const at::Tensor& tensor) {
      add(tensor);
      return tensor;
    });
  }
  Bytes bytes() const { return bytes_; }

 private:
  Storages seen_;
  /// Weak references to the counted storages, so that their addresses are not reused.
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> known_;
  Bytes bytes_ = 0;
};

/// Counts the bytes that autograd would save, and keeps no tensor.
class Counting final : public torch::autograd::SavedVariableHooks {
 public:
  explicit Counting(ByteCount& count) : count_(count) {}
  void call_pack_hook(const at::Tensor& value) override { count_.add(value); }
  at::Tensor call_unpack_hook() override { OFFPROF_CHECK(false); }

 private:
  ByteCount& count_;
};

Storages storages_of(const std::vector<at::Tensor>& tensors, const std::vector<c10::IValue>& inputs) {
  Storages storages;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.has_storage()) storages.insert(tensor.storage().unsafeGetStorageImpl());
    return tensor;
  };
  std::ranges::for_each(tensors, add);
  for (const c10::IValue& input : inputs) with_tensors_replaced(input, add);
  return storages;
}

/// Runs the pieces one after another.
class PieceRun {
 public:
  PieceRun(const ForwardGraph& forward, const torch::jit::Module& model,
           const std::vector<c10::IValue>& inputs)
      : forward_(forward), model_(model), values_(forward.values()) {
    std::vector<at::Tensor> tensors;
    for (const at::Tensor& parameter : model.parameters()) tensors.push_back(parameter);
    for (const at::Tensor& buffer : model.buffers()) tensors.push_back(buffer);
    residents_ = storages_of(tensors, inputs);
    std::ranges::copy(inputs, values_.begin());
  }

  PieceCosts::Piece run(std::size_t piece) {
    PieceCosts::Piece cost{.boundary_bytes = crossing_bytes(piece)};
    const ForwardGraph::Part part = forward_.part(piece, piece + 1);
    note_versions(piece);
    for (const at::Tensor& weight : parameters_in(part.attributes))
      cost.parameters.push_back({id_of(weight), static_cast<Bytes>(weight.nbytes())});
    cost.saved_bytes = run(part);
    forget_before(piece + 1);
    return cost;
  }

  /// Forbids slices to begin where a crossing tensor is edited in place later: a slice that edits its input
  /// cannot run again. Call after all pieces have run.
  void refuse_edited(PieceCosts& costs) const {
    for (const Crossing& crossing : crossings_)
      if (crossing.counter.enabled() && crossing.counter.current_version() != crossing.version)
        costs.pieces[crossing.piece].can_begin_a_slice = false;
  }

 private:
  struct Crossing {
    std::size_t piece = 0;
    c10::VariableVersion counter;
    std::uint32_t version = 0;
  };

  Bytes run(const ForwardGraph::Part& part) {
    ByteCount saved(residents_);
    const SavingElsewhere counting([&] { return std::make_unique<Counting>(saved); });
    std::vector<c10::IValue> stack = {model_._ivalue()};
    for (const ForwardGraph::ValueId input : part.inputs) stack.push_back(values_[input]);
    part.function->run(stack);
    const auto results = stack.front().toTuple();
    for (std::size_t i = 0; i < part.outputs.size(); ++i) values_[part.outputs[i]] = results->elements()[i];
    return saved.bytes();
  }

  Bytes crossing_bytes(std::size_t piece) const {
    ByteCount count(residents_);
    for (const ForwardGraph::ValueId value : forward_.crossing(piece)) count.add(values_[value]);
    return count.bytes();
  }

  /// Records the versions of all tensors that cross into the piece.
  void note_versions(std::size_t piece) {
    for (const ForwardGraph::ValueId value : forward_.crossing(piece))
      with_tensors_replaced(values_[value], [&](const at::Tensor& tensor) {
        if (tensor.defined())
          crossings_.push_back({piece, tensor.unsafeGetTensorImpl()->version_counter(), version_of(tensor)});
        return tensor;
      });
  }

  void forget_before(std::size_t piece) {
    std::vector<c10::IValue> kept(values_.size());
    for (const ForwardGraph::ValueId value : forward_.crossing(piece))
      kept[value] = std::move(values_[value]);
    values_ = std::move(kept);
  }

  std::int64_t id_of(const at::Tensor& weight) {
    return ids_.emplace(weight.unsafeGetTensorImpl(), static_cast<std::int64_t>(ids_.size())).first->second;
  }

  const ForwardGraph& forward_;
  const torch::jit::Module& model_;
  Storages residents_;
  std::vector<c10::IValue> values_;
  std::vector<Crossing> crossings_;
  std::map<const c10::TensorImpl*, std::int64_t> ids_;
};

}  // namespace

std::vector<at::Tensor> parameters_in(const std::vector<c10::IValue>& attributes) {
  std::vector<at::Tensor> parameters;
  std::set<const c10::TensorImpl*> seen;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) parameters.push_back(tensor);
  };
  for (const c10::IValue& attribute : attributes) {
    if (attribute.isTensor()) add(attribute.toTensor());
    if (!attribute.isModule()) continue;
    for (const at::Tensor& parameter : attribute.toModule().parameters()) add(parameter);
  }
  return parameters;
}

PieceCosts measure_pieces(const ForwardGraph& forward, const torch::jit::Module& model,
                          const std::vector<c10::IValue>& inputs, c10::Device device) {
  const auto written = written_attributes(model.get_method("forward").function(), *model.type());
  AttributeValues attributes(model._ivalue(), written);
  const AttributeScope as_they_are(attributes);
  const RngScope random{RngState(device)};
  const at::AutoGradMode grad(true);
  PieceRun run(forward, model, inputs);
  PieceCosts costs;
  for (std::size_t piece = 0; piece < forward.pieces(); ++piece) costs.pieces.push_back(run.run(piece));
  run.refuse_edited(costs);
  return costs;
}

}  // namespace offprof

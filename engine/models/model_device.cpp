#include "engine/models/model_device.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

#include <unordered_set>

#include "engine/models/meta_parameters.h"

namespace offprof {
namespace {

namespace attr = torch::jit::attr;
using torch::jit::Graph;
using torch::jit::Node;

/// Standard deviation that language models are usually initialized with.
constexpr double kFreshWeightDeviation = 0.02;

/// Rewrites the devices and constants in the graphs of a module.
class GraphMover {
 public:
  explicit GraphMover(c10::Device device) : device_(device) {}

  void move(const torch::jit::Module& module) {
    for (const torch::jit::Method& method : module.get_methods()) move(*method.graph());
    for (const torch::jit::Module& child : module.children()) move(child);
  }

 private:
  void move(Graph& graph) {
    if (seen_.insert(&graph).second) move(*graph.block());
  }

  void move(torch::jit::Block& block) {
    for (Node* node : block.nodes()) {
      if (node->kind() == c10::prim::Constant) move_constant(*node);
      for (torch::jit::Block* inner : node->blocks()) move(*inner);
    }
  }

  void move_constant(Node& constant) {
    const c10::TypePtr type = constant.output()->type();
    if (const auto function = type->cast<c10::FunctionType>()) {
      if (auto* called = torch::jit::tryToGraphFunction(*function->function())) move(*called->graph());
    } else if (!constant.hasAttribute(attr::value)) {
      return;
    } else if (type->kind() == c10::TypeKind::DeviceObjType) {
      constant.s_(attr::value, device_.str());
    } else if (constant.kindOf(attr::value) == torch::jit::AttributeKind::t) {
      const at::Tensor value = constant.t(attr::value);
      if (value.dim() > 0) constant.t_(attr::value, value.to(device_));
    }
  }

  c10::Device device_;
  std::unordered_set<const Graph*> seen_;
};

at::Tensor moved(const at::Tensor& value, c10::Device device) {
  if (!has_meta_parameters(value)) return value.to(device);
  const at::Tensor fresh = at::empty(value.sizes(), value.options().device(device));
  return fresh.is_floating_point() ? fresh.normal_(0, kFreshWeightDeviation) : fresh.zero_();
}

}  // namespace

void move_to_device(Model& model, c10::Device device, const std::function<void(const at::Tensor&)>& then,
                    const std::function<at::Tensor(const at::Tensor&)>& value_of) {
  const at::NoGradGuard no_grad;
  for (at::Tensor parameter : model.module.parameters()) {
    parameter.set_data(moved(value_of(parameter), device));
    then(parameter);
  }
  for (at::Tensor buffer : model.module.buffers()) buffer.set_data(moved(value_of(buffer), device));
  for (c10::IValue& input : model.inputs) input = input.toTensor().to(device);
  GraphMover(device).move(model.module);
}

}  // namespace offprof

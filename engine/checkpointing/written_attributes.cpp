#include "engine/checkpointing/written_attributes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "engine/checkpointing/graph_nodes.h"
#include "engine/torch/ivalue_tensors.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

namespace prim = c10::prim;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

/// Returns the path from the graph's first input to `object`; nullopt: it does not come from there.
std::optional<AttributePath> path_to(const Value* object, const Graph& graph) {
  if (object == graph.inputs().at(0)) return AttributePath();
  const Node* node = object->node();
  if (node->kind() != prim::GetAttr) return std::nullopt;
  auto path = path_to(node->input(), graph);
  if (path) path->push_back(node->s(torch::jit::attr::name));
  return path;
}

void add_buffers(const c10::ClassType& type, const AttributePath& path, std::set<AttributePath>& found) {
  for (std::size_t i = 0; i < type.numAttributes(); ++i) {
    AttributePath inner = path;
    inner.push_back(type.getAttributeName(i));
    if (type.is_buffer(i))
      found.insert(inner);
    else if (const auto child = type.getAttribute(i)->cast<c10::ClassType>(); child && child->is_module())
      add_buffers(*child, inner, found);
  }
}

/// Reads one method's graph, with all its calls inlined.
class GraphReader {
 public:
  explicit GraphReader(std::shared_ptr<Graph> graph)
      : graph_(std::move(graph)), nodes_(all_nodes(graph_)), aliases_(graph_, /*isFrozen=*/true) {}

  bool has_calls() const {
    return std::ranges::any_of(nodes_, [](const Node* node) {
      return node->kind() == prim::CallMethod || node->kind() == prim::CallFunction ||
             node->kind() == prim::fork;
    });
  }

  void add_written(std::set<AttributePath>& found) {
    for (Node* node : nodes_) {
      if (node->kind() == prim::SetAttr)
        add(path_to(node->inputs().at(0), *graph_), node->s(torch::jit::attr::name), found);
      if (node->kind() == prim::GetAttr && is_tensor(node->output()) && is_written(node->output()))
        add(path_to(node->input(), *graph_), node->s(torch::jit::attr::name), found);
    }
  }

 private:
  static bool is_tensor(const Value* value) {
    const c10::TypePtr& type = value->type();
    return type->isSubtypeOf(*c10::TensorType::get()) ||
           type->isSubtypeOf(*c10::OptionalType::create(c10::TensorType::get()));
  }

  static void add(std::optional<AttributePath> path, const std::string& name,
                  std::set<AttributePath>& found) {
    if (!path) return;
    path->push_back(name);
    found.insert(*path);
  }

  bool is_written(Value* attribute) const {
    if (aliases_.hasWriters(attribute)) return true;
    return std::ranges::any_of(nodes_, [&](Node* node) { return updates(*node, attribute); });
  }

  /// Norms write their running statistics although their schemas do not say so.
  bool updates(Node& node, Value* attribute) const {
    const c10::FunctionSchema* schema = node.maybeSchema();
    if (schema == nullptr) return false;
    for (std::size_t i = 0; i < schema->arguments().size() && i < node.inputs().size(); ++i)
      if (schema->arguments()[i].name().starts_with("running_") &&
          aliases_.mayContainAlias(node.inputs()[i], attribute))
        return true;
    return false;
  }

  std::shared_ptr<Graph> graph_;
  std::vector<Node*> nodes_;
  torch::jit::AliasDb aliases_;
};

bool is_parameter(const c10::ClassType& type, const AttributePath& path) {
  const c10::ClassType* owner = &type;
  for (std::size_t i = 0; i + 1 < path.size(); ++i)
    owner = &owner->getAttribute(path[i])->expectRef<c10::ClassType>();
  const auto slot = owner->findAttributeSlot(path.back());
  return !slot || owner->is_parameter(*slot);
}

}  // namespace

std::vector<AttributePath> written_attributes(const torch::jit::Function& method,
                                              const c10::ClassType& type) {
  const auto graph = torch::jit::toGraphFunction(method).graph()->copy();
  torch::jit::Inline(*graph);
  GraphReader reader(graph);
  std::set<AttributePath> found;
  reader.add_written(found);
  if (reader.has_calls()) add_buffers(type, {}, found);
  std::erase_if(found, [&](const AttributePath& path) { return is_parameter(type, path); });
  return {found.begin(), found.end()};
}

AttributeValues::AttributeValues(const c10::intrusive_ptr<c10::ivalue::Object>& module,
                                 const std::vector<AttributePath>& attributes) {
  const at::NoGradGuard no_grad;
  for (const AttributePath& path : attributes) {
    auto owner = module;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) owner = owner->getAttr(path[i]).toObject();
    const std::size_t index = owner->type()->getAttributeSlot(path.back());
    const auto copy = [](const at::Tensor& tensor) { return tensor.defined() ? tensor.clone() : tensor; };
    slots_.push_back({owner, index, with_tensors_replaced(owner->getSlot(index), copy)});
  }
}

void AttributeValues::swap() {
  for (Slot& slot : slots_) {
    c10::IValue held = slot.owner->getSlot(slot.index);
    slot.owner->setSlot(slot.index, std::exchange(slot.value, std::move(held)));
  }
}

}  // namespace offprof

#include "engine/slices/forward_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/checkpointing/graph_nodes.h"
#include "traces/base/check.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

namespace prim = c10::prim;
using torch::jit::Graph;
using torch::jit::GraphFunction;
using torch::jit::Module;
using torch::jit::Node;
using torch::jit::Value;

constexpr const char* kForwardMethod = "forward";

/// Returns true for a call of a submodule's forward, or of any method of a module.
bool is_call(const Node* node) {
  if (node->kind() != prim::CallMethod) return false;
  const auto type = node->inputs().at(0)->type()->cast<c10::ClassType>();
  return type && type->is_module();
}

torch::jit::Function& callee_of(const Node* call) {
  const auto& type = call->inputs().at(0)->type()->expectRef<c10::ClassType>();
  return type.getMethod(call->s(torch::jit::attr::name));
}

bool calls_others(const Node* call) {
  torch::jit::Function& callee = callee_of(call);
  if (!callee.isGraphFunction()) return false;
  return std::ranges::any_of(torch::jit::toGraphFunction(callee).graph()->nodes(), is_call);
}

/// Returns the source position, `model.py:12`; for a model from a file, as recorded in its archive.
std::string place_of(const Node* node) {
  const auto place = node->sourceRange().file_line_col();
  if (!place) return "an unknown line";
  return fmt::format("{}:{}", std::get<0>(*place), std::get<1>(*place));
}

}  // namespace

/// Copies pieces into a separate graph.
class ForwardGraph::PartBuilder {
 public:
  PartBuilder(const ForwardGraph& whole, std::size_t first, std::size_t end)
      : whole_(whole), first_(first), end_(end), graph_(std::make_shared<Graph>()) {
    const Value* module = whole.graph_->inputs().at(0);
    copies_[module] = graph_->addInput()->setType(module->type());
  }

  Part build() {
    Part part;
    for (Node* node : whole_.nodes_)
      if (!whole_.is_free(node) && is_inside(whole_.piece_of(node))) add(node);
    for (ValueId value = 0; value < whole_.uses_.size(); ++value)
      if (is_output(value)) part.outputs.push_back(value);
    add_result(part.outputs);
    part.inputs = std::move(inputs_);
    part.attributes = std::move(attributes_);
    part.function = std::make_unique<GraphFunction>(
        c10::QualifiedName("__torch__.offprof_part", kForwardMethod), graph_, nullptr);
    return part;
  }

 private:
  bool is_inside(std::size_t piece) const { return piece >= first_ && piece < end_; }

  bool is_output(ValueId value) const {
    const Use& use = whole_.uses_[value];
    return use.made >= 0 && is_inside(use.made) && !use.used.empty() && *use.used.rbegin() >= end_;
  }

  void add(Node* node) {
    note_attributes(node);
    Node* copy = graph_->insertNode(graph_->createClone(node, [&](Value* value) { return copy_of(value); }));
    for (std::size_t i = 0; i < node->outputs().size(); ++i) copies_[node->outputs()[i]] = copy->outputs()[i];
  }

  /// Returns the copy of a value. A value from before the part becomes an input, or is read again if it is a
  /// constant or an attribute.
  Value* copy_of(Value* value) {
    if (const auto found = copies_.find(value); found != copies_.end()) return found->second;
    Node* node = value->node();
    if (const auto id = whole_.value_id_.find(value); id != whole_.value_id_.end()) {
      inputs_.push_back(id->second);
      return copies_[value] = graph_->addInput()->setType(c10::unshapedType(value->type()));
    }
    OFFPROF_CHECK(whole_.is_free(node));
    Value* const owner = node->inputs().empty() ? nullptr : copy_of(node->input());
    Node* copy = graph_->createClone(node, [&](Value*) { return owner; });
    graph_->insertNode(copy);
    return copies_[value] = copy->output();
  }

  /// Adds the attributes that the node, or a node inside it, has as inputs.
  void note_attributes(const Node* node) {
    const bool only_leads_there = node->kind() == prim::GetAttr || node->kind() == prim::SetAttr;
    for (const Value* input : node->inputs())
      if (auto attribute = only_leads_there ? std::nullopt : whole_.attribute(input))
        attributes_.push_back(std::move(*attribute));
    for (const torch::jit::Block* block : node->blocks())
      for (const Node* inner : block->nodes()) note_attributes(inner);
  }

  void add_result(const std::vector<ValueId>& outputs) {
    std::vector<Value*> values(outputs.size());
    for (const auto& [value, id] : whole_.value_id_)
      if (const auto found = std::ranges::find(outputs, id); found != outputs.end())
        values[found - outputs.begin()] = copies_.at(value);
    graph_->registerOutput(graph_->insertNode(graph_->createTuple(values))->output());
  }

  const ForwardGraph& whole_;
  std::size_t first_, end_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<const Value*, Value*> copies_;
  std::vector<ValueId> inputs_;
  std::vector<c10::IValue> attributes_;
};

ForwardGraph::ForwardGraph(const Module& model)
    : model_(model), graph_(model.get_method(kForwardMethod).graph()->copy()) {
  find_assigned(model);
  inline_callers();
  begin_pieces();
  find_uses();
}

void ForwardGraph::find_assigned(const Module& module) {
  for (const torch::jit::Method& method : module.get_methods())
    for (const Node* node : all_nodes(method.graph()))
      if (node->kind() == prim::SetAttr) assigned_.insert(node->s(torch::jit::attr::name));
  for (const Module& child : module.children()) find_assigned(child);
}

/// Inlines calls until no submodule called in the top block calls others.
void ForwardGraph::inline_callers() {
  while (inline_one()) {
  }
}

bool ForwardGraph::inline_one() {
  auto nodes = graph_->nodes();
  const auto call =
      std::ranges::find_if(nodes, [](const Node* node) { return is_call(node) && calls_others(node); });
  if (call == nodes.end()) return false;
  Node* const node = *call;
  torch::jit::inlineCallTo(node, &torch::jit::toGraphFunction(callee_of(node)));
  return true;
}

std::vector<std::string> ForwardGraph::branches() const {
  std::vector<std::string> branches;
  for (const Node* node : nodes_) {
    if (node->blocks().empty()) continue;
    std::string branch =
        fmt::format("the {} at {}", node->kind() == prim::Loop ? "loop" : "branch", place_of(node));
    if (std::ranges::find(branches, branch) == branches.end()) branches.push_back(std::move(branch));
  }
  return branches;
}

void ForwardGraph::begin_pieces() {
  for (Node* node : graph_->nodes()) {
    position_.emplace(node, nodes_.size());
    nodes_.push_back(node);
  }
  const auto calls = std::ranges::count_if(nodes_, is_call);
  for (const Node* node : nodes_)
    if (calls > 1 ? is_call(node) : node->kind().is_aten()) begin_piece(node);
  if (first_nodes_.empty()) begin_piece(nodes_.empty() ? nullptr : nodes_.front());
}

/// Begins a piece at `node`. The first piece also takes all earlier nodes.
void ForwardGraph::begin_piece(const Node* node) {
  first_nodes_.push_back(first_nodes_.empty() ? 0 : position_.at(node));
  names_.push_back(node != nullptr && is_call(node) ? path_of(node->inputs().at(0)) : "");
}

void ForwardGraph::find_uses() {
  arguments_ = graph_->inputs().size() - 1;
  for (const Value* argument : graph_->inputs().slice(1)) add_value(argument, -1);
  for (const Node* node : nodes_)
    if (!is_free(node))
      for (const Value* value : node->outputs())
        add_value(value, static_cast<std::ptrdiff_t>(piece_of(node)));
  const Value* const result = graph_->outputs().at(0);
  const auto found = value_id_.find(result);
  if (found == value_id_.end())
    throw input_error("slices: the model's forward does not return a value that it computes",
                      "return the loss, or the logits, from forward");
  result_ = found->second;
}

void ForwardGraph::add_value(const Value* value, std::ptrdiff_t piece) {
  value_id_.emplace(value, uses_.size());
  Use& use = uses_.emplace_back(Use{piece});
  for (const torch::jit::Use& one : value->uses())
    use.used.insert(one.user == graph_->return_node() ? pieces() : piece_of(in_top_block(one.user)));
}

/// Returns true for constants and unassigned attributes: their values do not depend on when they are read.
bool ForwardGraph::is_free(const Node* node) const {
  if (node->kind() == prim::Constant) return true;
  if (node->kind() != prim::GetAttr) return false;
  const Value* owner = node->input();
  if (owner != graph_->inputs().at(0) && !is_free(owner->node())) return false;
  return !assigned_.contains(node->s(torch::jit::attr::name));
}

std::string ForwardGraph::path_of(const Value* object) const {
  if (object == graph_->inputs().at(0) || object->node()->kind() != prim::GetAttr) return {};
  const std::string owner = path_of(object->node()->input());
  const std::string& name = object->node()->s(torch::jit::attr::name);
  return owner.empty() ? name : owner + "." + name;
}

std::optional<c10::IValue> ForwardGraph::attribute(const Value* value) const {
  if (value == graph_->inputs().at(0)) return model_._ivalue();
  const Node* node = value->node();
  if (node->kind() != prim::GetAttr) return std::nullopt;
  const auto owner = attribute(node->input());
  if (!owner) return std::nullopt;
  return owner->toObject()->getAttr(node->s(torch::jit::attr::name));
}

std::size_t ForwardGraph::piece_of(const Node* node) const {
  const auto after = std::ranges::upper_bound(first_nodes_, position_.at(node));
  return static_cast<std::size_t>(after - first_nodes_.begin()) - 1;
}

const Node* ForwardGraph::in_top_block(const Node* node) const {
  while (node->owningBlock() != graph_->block()) node = node->owningBlock()->owningNode();
  return node;
}

std::vector<ForwardGraph::ValueId> ForwardGraph::crossing(std::size_t piece) const {
  std::vector<ValueId> values;
  for (ValueId value = 0; value < uses_.size(); ++value) {
    const Use& use = uses_[value];
    if (use.made < static_cast<std::ptrdiff_t>(piece) && !use.used.empty() && *use.used.rbegin() >= piece)
      values.push_back(value);
  }
  return values;
}

ForwardGraph::Part ForwardGraph::part(std::size_t first, std::size_t end) const {
  return PartBuilder(*this, first, end).build();
}

}  // namespace offprof

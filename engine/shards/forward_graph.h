#pragma once

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace offprof {

/// A model's forward, taken apart into pieces: each begins where a module is called that calls none
/// itself, however deep it lies; of a forward that calls hardly any, at each operator. Between two pieces any
/// values may cross, so forward need not be a chain of calls. What branches and loops hold stays together.
///
/// Consecutive pieces can be had as a function of their own. To call those of all pieces one after the other
/// is to call forward.
class ForwardGraph {
 public:
  /// A value that forward makes, or that it is given.
  using ValueId = std::size_t;

  /// The model must outlive it. Throws Error (input) where forward returns no value of its own.
  explicit ForwardGraph(const torch::jit::Module& model);

  std::size_t pieces() const { return first_nodes_.size(); }
  /// Where forward branches or loops, for errors: `the loop at model.py:12`, in order, once each.
  std::vector<std::string> branches() const;
  /// The path of the submodule that the piece begins with; empty where it is an operator.
  const std::string& piece_name(std::size_t piece) const { return names_[piece]; }

  /// Those of forward's arguments behind the module, in order.
  std::size_t arguments() const { return arguments_; }
  /// What pieces up to `piece` made, or the arguments, and those from it on use.
  std::vector<ValueId> crossing(std::size_t piece) const;

  /// Consecutive pieces.
  struct Part {
    std::unique_ptr<torch::jit::GraphFunction> function;  ///< takes the module and `inputs`
    std::vector<ValueId> inputs;                          ///< made before; arguments are values 0, 1, ...
    std::vector<ValueId> outputs;                         ///< used after; what `function` returns, as a tuple
    /// Of the module: what `function` reads of it, whether tensors or submodules.
    std::vector<c10::IValue> attributes;
  };
  /// The pieces from `first` to before `end`.
  Part part(std::size_t first, std::size_t end) const;

  /// What forward returns.
  ValueId result() const { return result_; }
  std::size_t values() const { return uses_.size(); }

 private:
  using Node = torch::jit::Node;
  using Value = torch::jit::Value;
  class PartBuilder;

  /// By value: the piece that makes it, -1 for an argument, and the last that uses it; the result is used by
  /// one more than there are.
  struct Use {
    std::ptrdiff_t made = -1;
    std::set<std::size_t> used{};
  };

  void find_assigned(const torch::jit::Module& module);
  void inline_callers();
  bool inline_one();
  void begin_pieces();
  void begin_piece(const Node* node);
  void find_uses();
  void add_value(const Value* value, std::ptrdiff_t piece);
  bool is_free(const Node* node) const;
  std::string path_of(const Value* object) const;
  /// What it is of the module; nullopt: it is none of its attributes.
  std::optional<c10::IValue> attribute(const Value* value) const;
  std::size_t piece_of(const Node* node) const;
  const Node* in_top_block(const Node* node) const;

  torch::jit::Module model_;
  std::shared_ptr<torch::jit::Graph> graph_;
  std::set<std::string> assigned_;  ///< names of attributes that some method assigns
  std::vector<Node*> nodes_;        ///< of the top block
  std::unordered_map<const Node*, std::size_t> position_;
  std::vector<std::size_t> first_nodes_;  ///< by piece
  std::vector<std::string> names_;
  std::size_t arguments_ = 0;
  std::vector<Use> uses_;
  std::unordered_map<const Value*, ValueId> value_id_;
  ValueId result_ = 0;
};

}  // namespace offprof

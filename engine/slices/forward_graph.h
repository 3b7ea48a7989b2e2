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

/// A model's forward, cut into pieces. A piece begins at each call of a module that calls no other module, at
/// any depth; in a forward with hardly any such calls, at each operator. Any values may cross from piece to
/// piece, so forward need not be a chain of calls. Branches and loops are not cut.
///
/// Consecutive pieces can be extracted as a function. Calling the functions of all pieces one after another
/// is equivalent to calling forward.
class ForwardGraph {
 public:
  /// A result of a node of forward, or an argument.
  using ValueId = std::size_t;

  /// The model must outlive this object. Throws Error (input) if forward returns none of its own values.
  explicit ForwardGraph(const torch::jit::Module& model);

  std::size_t pieces() const { return first_nodes_.size(); }
  /// Returns the branches and loops in forward, for errors: `the loop at model.py:12`, in order, once each.
  std::vector<std::string> branches() const;
  /// Returns the path of the submodule that the piece begins with; empty if it begins with an operator.
  const std::string& piece_name(std::size_t piece) const { return names_[piece]; }

  /// Returns the number of forward's arguments after the module.
  std::size_t arguments() const { return arguments_; }
  /// Returns the arguments and results of earlier pieces that `piece` or later pieces use.
  std::vector<ValueId> crossing(std::size_t piece) const;

  /// Consecutive pieces.
  struct Part {
    std::unique_ptr<torch::jit::GraphFunction> function;  ///< takes the module and `inputs`
    std::vector<ValueId> inputs;                          ///< made before; arguments are values 0, 1, ...
    std::vector<ValueId> outputs;                         ///< used after; `function` returns them as a tuple
    /// The module's attributes that `function` reads: tensors or submodules.
    std::vector<c10::IValue> attributes;
  };
  /// Returns the pieces in [first, end).
  Part part(std::size_t first, std::size_t end) const;

  /// Returns the value that forward returns.
  ValueId result() const { return result_; }
  std::size_t values() const { return uses_.size(); }

 private:
  using Node = torch::jit::Node;
  using Value = torch::jit::Value;
  class PartBuilder;

  /// Uses of a value: the piece that makes it (-1 for an argument), and the pieces that use it. The result is
  /// used by a piece after the last.
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
  /// Returns the module's attribute that `value` reads; nullopt: it reads none.
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

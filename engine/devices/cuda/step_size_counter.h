#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace offprof {

/// Counts the tokens that a program's steps process, and tells which operators backward runs to compute
/// something again. Any thread may call it.
class StepSizeCounter {
 public:
  void begin_op(const at::RecordFunction& op);
  /// Returns the tokens since the last call: the most elements that one embedding was given in indices of two
  /// or more dimensions, as `[batch, sequence]`. 0: none.
  std::int64_t take_tokens();

  /// Call it when a node of the graph begins on the calling thread. The node ends with the context.
  static std::unique_ptr<at::ObserverContext> begin_node();
  /// Returns true if the calling thread runs a node of the graph, and in it computes with a graph of its own:
  /// then it runs part of forward again, as checkpointing does. Nodes of a backward that itself makes a graph
  /// (`create_graph`) do not count.
  static bool is_computing_again();

 private:
  std::mutex mutex_;
  std::map<const void*, std::int64_t> tokens_;  ///< by weight of an embedding
};

}  // namespace offprof

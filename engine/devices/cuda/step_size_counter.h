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
  /// Returns the tokens since the last call: the indices of two or more dimensions, as `[batch, sequence]`,
  /// that were looked up in the embedding with the most rows, of those that several samples were looked up
  /// in, if there are any. Tables of positions do not count. 0: none.
  std::int64_t take_tokens();

  /// Call it when a node of the graph begins on the calling thread. The node ends with the context.
  static std::unique_ptr<at::ObserverContext> begin_node();
  /// Returns true if the calling thread runs a node of the graph, and in it computes with a graph of its own:
  /// then it runs part of forward again, as checkpointing does. Nodes of a backward that itself makes a graph
  /// (`create_graph`) do not count.
  static bool is_computing_again();

 private:
  struct Lookups {
    bool is_of_batches = false;  ///< of several samples; positions are often looked up once for all
    std::int64_t rows = 0;       ///< of the embedding
    std::int64_t tokens = 0;
  };

  std::mutex mutex_;
  std::map<const void*, Lookups> lookups_;  ///< by weight of an embedding
};

}  // namespace offprof

#include "engine/checkpointing/graph_nodes.h"

#include <torch/csrc/jit/runtime/graph_iterator.h>

namespace offprof {

std::vector<torch::jit::Node*> all_nodes(std::shared_ptr<torch::jit::Graph> graph) {
  std::vector<torch::jit::Node*> nodes;
  torch::jit::DepthFirstGraphNodeIterator iterator(graph);
  while (torch::jit::Node* node = iterator.next()) nodes.push_back(node);
  return nodes;
}

}  // namespace offprof
